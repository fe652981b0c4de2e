"""netCDF files: the checksum at their end, and the bounds on their structure."""

import hashlib

import h5py
import numpy as np
import pytest
import xarray

from borelli.errors import FileFormatError
from borelli.files.netcdf import TRAILER_SIZE, copy_content, open_netcdf
from borelli.files.netcdf_writer import write_netcdf
from borelli.files.text import parse_json

from ..hostile.stage_mutations import stamped, unstamped


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with numbers, strings, flags and a group."""
    data = xarray.Dataset(
        {"x": (("time", "name"), np.arange(6.0).reshape(3, 2), {"units": "m"}), "ok": ("time", [True, False, True])},
        {"time": [0.0, 0.1, 0.2], "name": ["a", "bc"], "side": ("name", ["l", "r"])},
        {"rate": 10.0, "title": "test", "empty": "", "belt": [1.0, 2.0, 3.0]},
    )
    write_netcdf(tmp_path / "x.nc", {"/": data, "inner": data})
    return tmp_path / "x.nc"


def change(path, edit):
    """Change a file through HDF5 and give it the right checksum."""
    path.write_bytes(unstamped(path.read_bytes()))
    with h5py.File(path, "r+") as file:
        edit(file)
    path.write_bytes(stamped(path.read_bytes()))


def test_file_ends_with_the_hash_of_its_content(path):
    content = path.read_bytes()
    digest = hashlib.sha256(content[:-TRAILER_SIZE]).hexdigest()
    assert content[-TRAILER_SIZE:] == f"borelli sha256 {digest}\n".encode()


def test_groups_are_loaded_as_xarray_loads_them(path):
    file = open_netcdf(path)
    assert file.groups == ("inner",) and file.has_checksum and file.attrs["title"] == "test"
    for group in (None, "inner"):
        with xarray.open_dataset(path, engine="h5netcdf", group=group, decode_times=False) as expected:
            found = file.load(group)
            assert found.identical(expected.load()) and list(found.variables) == list(expected.variables)
            assert {name: found[name].dtype for name in found.variables} == {
                name: expected[name].dtype for name in expected.variables
            }


def test_file_changed_in_any_byte_is_refused(path):
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        with pytest.raises(FileFormatError, match=r"checksum|not in netCDF 4 format"):
            open_netcdf(path)
    for end in (0, 7, 8, 50, 500, len(content) - TRAILER_SIZE, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(FileFormatError, match=r"checksum|not in netCDF 4 format"):
            open_netcdf(path)


def _without_dimensions(group):
    del group["x"].attrs["DIMENSION_LIST"]


def _with_one_dimension_twice(group):
    scales = group["x"].attrs["DIMENSION_LIST"]
    scales[1] = scales[0]
    group["x"].attrs.create("DIMENSION_LIST", scales, dtype=h5py.vlen_dtype(h5py.ref_dtype))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("edit", [_without_dimensions, _with_one_dimension_twice])
def test_opened_variables_have_dimensions_of_different_names(path, edit):
    assert open_netcdf(path).open("inner")["x"].dims == ("time", "name")
    change(path, lambda file: edit(file["inner"]))
    with pytest.raises(FileFormatError, match="variables and dimensions are inconsistent"):
        open_netcdf(path).open("inner")


def test_copy_has_no_old_checksum_and_a_damaged_file_is_not_copied(path, tmp_path):
    content = path.read_bytes()
    copy_content(path, tmp_path / "y.nc")
    assert (tmp_path / "y.nc").read_bytes() == unstamped(content)
    more = xarray.Dataset({"z": ("time", [1.0])})
    write_netcdf(tmp_path / "more.nc", {"more": more}, copy_of=path)
    assert open_netcdf(tmp_path / "more.nc").groups == ("inner", "more")
    path.write_bytes(content[:900] + b"?" + content[901:])
    with pytest.raises(FileFormatError, match="damaged or was changed"):
        write_netcdf(tmp_path / "z.nc", {"more": more}, copy_of=path)
    assert not (tmp_path / "z.nc").exists() and not list(tmp_path.glob(".borelli*"))


def nest(file):
    group = file.create_group("a")
    group.create_group("b")


def many_strings(file):
    made = file.create_dataset("many", data=["first", *["x"] * 999], dtype=h5py.string_dtype())
    made[0] = "n" * 20_000


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda f: f.create_dataset("z", (22 * 2**27,), dtype="f8"), "arrays up to 'z' would take 2362"),
        (
            lambda f: f.create_dataset("z", (1,), "f4", chunks=(2**25,), maxshape=(None,)),
            "arrays up to 'z' would take 134",
        ),
        (lambda f: f.create_dataset("z", data=np.zeros(9), compression="gzip"), "'z' are compressed or filtered"),
        (lambda f: f.create_dataset("z", data=np.zeros(9), chunks=(9,), fletcher32=True), "compressed or filtered"),
        (lambda f: f.create_dataset("z", (4,), dtype="f8", external=[("/dev/zero", 0, 32)]), "in another file"),
        (lambda f: f.create_dataset("z", data=np.zeros(3, "c16")), "'z' contains complex128"),
        (lambda f: f.create_dataset("z", data=np.zeros((1,) * 9)), "'z' has shape"),
        (lambda f: f.create_dataset("z", data=f.ref, dtype=h5py.ref_dtype), "'z' has shape"),
        (many_strings, "arrays up to 'many' would take 100"),
        (nest, "'a/b' is not an array"),
        (lambda f: f["inner"].__setitem__("again", f), "'inner/again' is not an array"),
        (lambda f: f.__setitem__("z", h5py.SoftLink("/x")), "'z' is a link"),
        (lambda f: f["inner"].__setitem__("z", h5py.ExternalLink("/etc/hostname", "/x")), "'z' is a link"),
        (lambda f: f.__setitem__("z", np.dtype("f8")), "'z' is not an array"),
        (lambda f: [f.create_group(f"g{i}") for i in range(1000)], "variables and groups"),
        (lambda f: f.create_group("n" * 400), "A name has 400 characters"),
        (lambda f: [f["x"].attrs.create(f"a{i}", i) for i in range(101)], "attributes .maximum 100"),
        (lambda f: f.attrs.create("a", ["y"] * 65, dtype=h5py.string_dtype()), "'a' of '/' has 65 elements"),
        (lambda f: f.attrs.create("a", np.zeros(2, [("p", "f8")])), "'a' of '/' is neither"),
        (lambda f: f.attrs.create("a", np.zeros((), "V7")), "'a' of '/' is neither"),
    ],
)
def test_structure_is_bounded(path, edit, message):
    change(path, edit)
    with pytest.raises(FileFormatError, match=message):
        open_netcdf(path)


@pytest.mark.parametrize("length", [0, 1, 2**64 - 8, 2**64 - 1, 5000])
def test_strings_with_wrong_lengths_are_refused(path, length):
    """HDF5 2.0 never returns from reading a heap whose free space, of index 0, has the length 0."""
    content = bytearray(unstamped(path.read_bytes()))
    place = content.index(b"GCOL") + 16
    while content[place : place + 2] != b"\0\0":
        place += 16 + -(-int.from_bytes(content[place + 8 : place + 16], "little") // 8) * 8
    content[place + 8 : place + 16] = length.to_bytes(8, "little")
    path.write_bytes(stamped(bytes(content)))
    with pytest.raises(FileFormatError, match="strings have wrong lengths"):
        open_netcdf(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "NoneType"), ("[1]", "expected a table"), ("{", "not JSON"), ('{"a": ' + "1" * 9000 + "}", "not JSON"),
        ("[" * 100_000, "not JSON"), ('{"a": ' + "[" * 20 + "]" * 20 + "}", "nested too deeply"),
    ],
)  # fmt: skip
def test_json_is_bounded(text, message):
    with pytest.raises(FileFormatError, match=rf"x\.nc: about .*{message}"):
        parse_json(text, "x.nc", "about")
    assert parse_json('{"a": [[{"b": 1}]]}', "x.nc", "about") == {"a": [[{"b": 1}]]}
