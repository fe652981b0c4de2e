"""Muscles and sides from names of EMG channels and of model muscles.

A name is read by a table of abbreviations, with its side as a word, a letter before or after, or none. A letter L may
be left or lateral: the other names decide. If they have the same stem with R, it is a side; with M, it is lateral. A
name with several readings that nothing decides between has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from borelli.files.html_repr import fields_repr

TABLE = """
leg tibialis_anterior: ta tib tiba tibant anttib tibialis
leg peroneus_longus: pl per perl perlong peroneus perolong
leg peroneus_brevis: pb perb perbrev
leg soleus: sol msol msoleus solmed
leg gastrocnemius: gas gast gastroc gastrocs jum jumeau
leg gastrocnemius_medialis: mg gm mgas mgast gasm gasmed gastm gastmed medgas medgast gastrocmed mgastroc
leg gastrocnemius_medialis: medialgastrocnemius medgastroc
leg gastrocnemius_lateralis: lg gl lgas lgast gasl gaslat gastl gastlat latgas latgast gastroclat lgastroc
leg gastrocnemius_lateralis: lateralgastrocnemius latgastroc
leg vastus_lateralis: vl vlo vlat vaslat vastlat vastuslat
leg vastus_medialis: vm vmo vmed vasmed vastmed vastusmed vastusmedius
leg vastus_intermedius: vi vint vasint
leg vasti: vas vast vastus quad quads quadriceps
leg rectus_femoris: rf rec recfem rectus rectfem rectusfem
leg biceps_femoris: bf bic bicfem biceps bicepsfem
leg biceps_femoris_long_head: bflh bifemlh bicfemlh bicepsfemlh
leg biceps_femoris_short_head: bfsh bifemsh bicfemsh bicepsfemsh
leg semitendinosus: st semiten semitend
leg semimembranosus: sm semimem
leg hamstrings: ham hams hamstring isc ischio ischios
leg hamstrings_medial: mh mham mhams medham medhams medialhamstrings medialhamstring
leg hamstrings_lateral: lh lham lhams latham lathams lateralhamstrings lateralhamstring
leg gluteus_maximus: gm gmax glmax glutmax glutemax gluteusmax
leg gluteus_medius: gm gmed glmed glutmed glutemed gluteusmed
leg gluteus_minimus: gmin glmin glutmin
leg tensor_fasciae_latae: tfl
leg adductor_magnus: addmag addmagnus
leg adductor_longus: addlong addl
leg adductors: add adductor
leg gracilis: gra grac
leg sartorius: sar sart
leg iliopsoas: psoas ilpso
leg iliacus: ilia
leg extensor_digitorum_longus: edl extdig
leg flexor_digitorum_longus: fdl flexdig
leg extensor_hallucis_longus: ehl exthal
leg flexor_hallucis_longus: fhl flexhal
leg tibialis_posterior: tp tibpost
trunk erector_spinae: es ersp erec erector erectorspinae
trunk rectus_abdominis: ra ras recabd rectusabdominis
trunk external_oblique: eo extobl obliquusexternus
trunk internal_oblique: io intobl obliquusinternus
trunk multifidus: mf mult
arm trapezius: trap
arm trapezius_upper: ut utrap uppertrap
arm latissimus_dorsi: ld latdorsi
arm pectoralis_major: pec pecmaj pecs
arm deltoid: delt
arm deltoid_anterior: ad adelt antdelt deltant
arm deltoid_middle: md mdelt middelt deltmid
arm deltoid_posterior: pd pdelt postdelt deltpost
arm biceps_brachii: bb bic biceps bicbra bicepsbrachii
arm triceps_brachii: tb tri tric triceps tricepsbrachii
arm brachioradialis: br brd brachrad
arm flexor_carpi_radialis: fcr
arm flexor_carpi_ulnaris: fcu
arm extensor_carpi_radialis: ecr
arm extensor_carpi_ulnaris: ecu
"""
"""Region, muscle and abbreviations: those of SENIAM (Hermens et al. 2000), of OpenSim models, and of files of several
laboratories."""

PARTS = {
    "gastrocnemius": ("gastrocnemius_medialis", "gastrocnemius_lateralis"),
    "vasti": ("vastus_lateralis", "vastus_medialis", "vastus_intermedius"),
    "biceps_femoris": ("biceps_femoris_long_head", "biceps_femoris_short_head"),
    "hamstrings_lateral": ("biceps_femoris", "biceps_femoris_long_head", "biceps_femoris_short_head"),
    "hamstrings_medial": ("semitendinosus", "semimembranosus"),
    "hamstrings": ("semitendinosus", "semimembranosus", "biceps_femoris", "biceps_femoris_long_head"),
    "iliopsoas": ("iliacus",),
    "adductors": ("adductor_magnus", "adductor_longus"),
}
"""Muscles of a group."""

MIN_CONTEXT = 3
"""Names of one region that decide between readings of different regions."""
NOISE_WORDS = frozenset(
    ["emg", "voltage", "volt", "v", "mv", "uv", "sensor", "channel", "ch", "raw", "analog", "muscle"]
)
SIDES = {"l": "l", "left": "l", "lt": "l", "r": "r", "right": "r", "rt": "r"}


class MuscleName(NamedTuple):
    """Muscle and side that a name means; readings that nothing decides between in `candidates`."""

    name: str
    muscle: str
    """"" if it is unknown or has several readings."""
    side: str
    """"l", "r" or ""."""
    candidates: tuple[str, ...]

    def __repr__(self) -> str:
        return fields_repr(self)

    @property
    def label(self) -> str:
        """Muscle with its side, such as "soleus_r"."""
        return f"{self.muscle}_{self.side}" if self.side else self.muscle


class _Reading(NamedTuple):
    muscle: str
    region: str
    side: str
    stem: str
    """Name without its first letter, where that may be a side or a part."""


def _read_table() -> tuple[dict[str, list[str]], dict[str, str]]:
    muscles: dict[str, list[str]] = {}
    regions = {}
    for line in TABLE.split("\n"):
        head, _, aliases = line.partition(":")
        if head:
            region, muscle = head.split()
            regions[muscle] = region
            for alias in (muscle.replace("_", ""), *aliases.split()):
                if muscle not in muscles.setdefault(alias, []):
                    muscles[alias].append(muscle)
    return muscles, regions


MUSCLES_BY_ALIAS, REGIONS = _read_table()


def read_muscle_names(names: Sequence[str]) -> tuple[MuscleName, ...]:
    """Return the muscle and side of each name, all names of a file or model together.

    Args:
        names: Names of EMG channels or of the muscles of a model.
    """
    readings = [_readings(name) for name in names]
    keys = {_key(name) for name in names}
    readings = [_decide_first_letter(found, keys) for found in readings]
    certain = [found[0].region for found in readings if len({r.region for r in found}) == 1]
    if len(certain) >= MIN_CONTEXT and len(set(certain)) == 1:
        readings = [[r for r in found if r.region == certain[0]] or found for found in readings]
    return tuple(_choose(name, found) for name, found in zip(names, readings, strict=True))


def matching_muscles(muscle: MuscleName, others: Iterable[MuscleName]) -> list[str]:
    """Return the names among `others` of the same side that are the muscle or parts of it.

    Args:
        muscle: Muscle and side, as of an EMG channel.
        others: Muscles to compare it with, as those of a model.
    """
    members = (muscle.muscle, *PARTS.get(muscle.muscle, ()))
    return [other.name for other in others if other.muscle in members and muscle.side in ("", other.side)]


def _words(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = [word.lower() for word in re.split(r"[^A-Za-z]+", spaced) if word]
    return [word for word in words if word not in NOISE_WORDS]


def _key(name: str) -> str:
    return "".join(_words(name))


def _readings(name: str) -> list[_Reading]:
    words = _words(name)
    sides = [i for i, word in enumerate(words) if word in SIDES]
    if len(words) > 1 and len(sides) == 1:
        side = SIDES[words[sides[0]]]
        rest = words[: sides[0]] + words[sides[0] + 1 :]
        # OpenSim's med_gas is gas_med
        keys = dict.fromkeys(["".join(rest), "".join(reversed(rest))])
        muscles = dict.fromkeys(m for key in keys for m in MUSCLES_BY_ALIAS.get(key, ()))
        return [_Reading(m, REGIONS[m], side, "") for m in muscles]
    key = "".join(words)
    found = [_Reading(m, REGIONS[m], "", key[1:]) for m in MUSCLES_BY_ALIAS.get(key, ())]
    for letter, stem in ((key[:1], key[1:]), (key[-1:], key[:-1])):
        if letter in ("l", "r"):
            found += [_Reading(m, REGIONS[m], letter, stem) for m in MUSCLES_BY_ALIAS.get(stem, ())]
    return found


def _decide_first_letter(found: list[_Reading], keys: set[str]) -> list[_Reading]:
    """Return the readings that fit the other names: L is a side if R occurs with the stem, lateral if M does."""
    if len({(r.muscle, r.side) for r in found}) < 2:
        return found
    whole = [r for r in found if not r.side]
    sided = [r for r in found if r.side]
    if not whole or not sided:
        return found
    paired = any(("l" if r.side == "r" else "r") + r.stem in keys for r in sided)
    medial = any("m" + r.stem in keys for r in whole)
    if paired == medial:
        return found
    return sided if paired else whole


def _choose(name: str, found: list[_Reading]) -> MuscleName:
    distinct = {(r.muscle, r.side) for r in found}
    if len(distinct) == 1:
        return MuscleName(name, found[0].muscle, found[0].side, ())
    candidates = tuple(f"{muscle}_{side}" if side else muscle for muscle, side in sorted(distinct))
    return MuscleName(name, "", "", candidates)
