"""Grammar of labels made of words: the part of the body, and words that qualify it."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache

QUALIFIERS: Mapping[str, tuple[str, ...]] = {
    "lateral": ("lat", "lateral", "latl", "out", "outer", "outside", "ext", "external", "lt"),
    "medial": ("med", "medial", "in", "inner", "inside", "int", "internal", "m", "mid", "mi"),
    "front": ("ant", "anterior", "front", "fr", "fore", "f"),
    "back": ("post", "posterior", "rear", "back", "behind", "bk", "b", "dorsal"),
    "top": ("sup", "superior", "top", "upper", "up", "high"),
    "low": ("inf", "inferior", "low", "lower", "dist", "distal"),
    "tip": ("tip", "end", "big"),
    "small": ("small", "little", "pinky"),
    "radial": ("radius", "radial", "rad", "thumb", "ra"),
    "ulnar": ("ulna", "ulnar", "uln", "ul"),
    "joint": ("jc", "joint", "jnt", "center", "centre", "cen", "cent", "reg"),
    "one": ("1", "1st", "first"), "two": ("2", "2nd", "second", "3", "3rd", "4"), "five": ("5", "5th", "fifth"),
}  # fmt: skip
"""Words that say where on a part of the body a marker is."""

_BY_WORD = {word: name for name, words in QUALIFIERS.items() for word in words}
_TOES = {
    "lateral": "mt5", "medial": "mt1", "tip": "hallux", "small": "toe_small", "one": "mt1", "two": "mt2", "five": "mt5",
}  # fmt: skip
_PARTS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    (r"centreofmass|centerofmass", "mass_center", {}),
    (r"fore?head", "head_front", {}),
    (r"auricul|tragus|tragion|^ears?$|ear$", "ear", {}),
    (r"temple|tempor", "temple", {}),
    (r"mastoid", "mastoid", {}),
    (r"glabella|nasion", "glabella", {}),
    (r"chee[ck]", "cheek", {}),
    (r"nose", "nose", {}),
    (r"^chin", "chin", {}),
    (r"^eye", "eye", {}),
    (r"head|skull|cranium", "head_center", {"front": "head_front", "back": "head_back", "top": "head_top"}),
    (r"(?:^|spine|vert|cerv)c(?:v|erv\w*)?7|cervical7|vertebraprominens", "C7", {}),
    (r"(?:thor\w*|spine|^)t?h?v?(?:10)$|spinet10", "T10", {}),
    (r"sternoclav", "sternoclavicular", {}),
    (r"jugul|suprastern|incisura|manubr|sternalnotch", "jugular_notch", {}),
    (r"x[iy]ph", "xiphoid", {}),
    (r"stern", "sternum", {"top": "jugular_notch", "low": "xiphoid"}),
    (r"clavic|collar", "clavicle", {}),
    (r"scapula|scap", "scapula", {"low": "scapula_inferior"}),
    (r"acrom|should", "acromion", {"front": "shoulder_front", "back": "shoulder_back", "joint": "shoulder_center"}),
    (r"glenohum", "shoulder_center", {}),
    (r"olecran", "olecranon", {}),
    (r"(?:hum|arm).*(?:epi|cond)|(?:epi|cond).*(?:hum|arm)|elbow", "elbow_lateral",
     {"medial": "elbow_medial", "joint": "elbow_center", "low": "forearm"}),
    (r"hum\w*tub|tub\w*hum", "humerus_tubercle", {}),
    (r"forearm|lowerarm|lowarm|antebra|farm|larm", "forearm", {"radial": "wrist_radial", "ulnar": "wrist_ulnar"}),
    (r"wrist|styloid", "wrist", {
        "lateral": "wrist_radial", "radial": "wrist_radial", "medial": "wrist_ulnar", "ulnar": "wrist_ulnar",
        "joint": "wrist_center",
    }),
    (r"upperarm|uparm|uarm|bicep|tricep|delt|humer", "upper_arm", {}),
    (r"^arm$", "upper_arm", {}),
    (r"thumb|thmb", "thumb", {}),
    (r"index|^idx", "index", {}),
    (r"^middle(?:finger)?$", "middle", {}),
    (r"^ring", "ring", {}),
    (r"pinky$|littlefinger", "pinky", {}),
    (r"metac", "mc3", {"one": "thumb", "two": "mc2", "five": "mc5"}),
    (r"finger", "finger", {}),
    (r"hand|palm", "hand", {"lateral": "mc5", "medial": "mc2", "joint": "wrist_center"}),
    (r"^radius|radius$", "wrist_radial", {}),
    (r"^ulna|ulna$", "wrist_ulnar", {}),
    (r"asis|sias|iliac.*ant|ant.*iliac", "asis", {}),
    (r"psis|sips|iliac.*post|post.*iliac", "psis", {}),
    (r"iliac|crest", "iliac_crest", {}),
    (r"sacr", "sacrum", {}),
    (r"ischi", "ischial_tuberosity", {}),
    (r"troc", "greater_trochanter", {}),
    (r"waist|pelvi", "pelvis_center", {"front": "asis", "back": "psis"}),
    (r"hip|upleg|upperleg|upplegg", "greater_trochanter", {"joint": "hip_center"}),
    (r"fib\w*head|head\w*fib|^fibula$", "fibular_head", {}),
    (r"tib\w*(?:tub|tur)|tub\w*tib|tuberos", "tibial_tuberosity", {}),
    (r"tib\w*plat|plateau", "tibial_plateau_lateral", {"medial": "tibial_plateau_medial"}),
    (r"patel|kneecap", "patella", {}),
    (r"knee|cond|epi(?:lat|med|$)", "knee_lateral", {"medial": "knee_medial", "joint": "knee_center"}),
    (r"thigh|femur|femor|quad|hamstr|^ham$", "thigh", {}),
    (r"ankle|mall|^mal(?:lat|med|$)|(?:lat|med)mal$", "malleolus_lateral",
     {"medial": "malleolus_medial", "joint": "ankle_center"}),
    (r"shank|shin|tibia|fibul|calf|lowerleg|lowleg", "shank", {}),
    (r"(?<!w)heel|calc", "heel", {"lateral": "heel_lateral"}),
    (r"metat|meta", "mt2", _TOES),
    (r"forefoot", "mt2", _TOES),
    (r"midfoot", "midfoot", {"lateral": "midfoot_lateral"}),
    (r"hallux|bigtoe|toetip", "hallux", {}),
    (r"toe", "mt2", _TOES),
    (r"foot", "foot", {"lateral": "mt5", "medial": "mt1", "back": "heel"}),
    (r"neck", "neck", {}),
    (r"spine|vertebr", "spine", {}),
    (r"chest|thorax|trunk|torso", "chest", {}),
    (r"navel|umbil", "navel", {}),
    (r"back", "back_offset", {"top": "C7"}),
)  # fmt: skip
"""Parts of the body in order of precedence: pattern of the joined words, landmark, and landmarks by qualifier."""

_COMPILED = tuple((re.compile(pattern), landmark, qualified) for pattern, landmark, qualified in _PARTS)
_VERTEBRA = re.compile(r"(?:spine|thor\w*|lumb\w*|vert\w*)?([ctl])(?:v|erv\w*|hor\w*|h)?(\d{1,2})(?:spin\w*)?$")
_VERTEBRAE = {
    "c7": "C7",
    "t2": "T2",
    "t4": "T4",
    "t7": "T7",
    "t8": "T8",
    "t10": "T10",
    "t12": "T12",
    "l3": "L3",
    "l5": "L5",
}
_CODES = """
head_top: thd ariel vertex
head_front: fhd hdf ahd
head_back: bhd hdb phd
head_side: shd
mastoid: mas mast
glabella: glab gla
temple: temp tem
C7: c7 cv7
jugular_notch: clav ij snj sjn jn man ssn jug
xiphoid: px xp xpro xip sxs
sternum: ster stern strn
scapula: sca scap
scapula_inferior: sai
scapula_spine: sts
acromion_angle: saa
coracoid: cor
sternoclavicular: scj
acromion: acr acrom sho shou shl saj caj
shoulder_front: fsh ash
shoulder_back: bsh psh
shoulder_center: sjc ghjc
back_offset: bak bac off
chest: chst
belly: ab abd blly
breast: bust
upper_arm: upa ua uar up arm bic bcep del
elbow_lateral: elb lel ell hle lee
elbow_medial: mel elm hme mee
elbow_center: ejc
olecranon: ole olec uoa
forearm: frm fra far fr fa
wrist: wri wr
wrist_radial: wra rad rsp iwr wts
wrist_ulnar: wrb uln usp uhe owr wps
wrist_center: wjc
hand: han hnd hps hts
mc2: fin hm2 mc2 hmc2 2mc
mc3: hm3 mc3 hmc3 3mc
mc5: hm5 mc5 hmc5 5mc
thumb: thm thmb thu
index: idx
middle: mid
ring: rng
pinky: pnk
asis: asi ias fwt sias
psis: psi ips bwt sips
sacrum: sac sacr vsac s1 s2
iliac_crest: ic ilc icr csi prfwt
buttock: bum
waist: wst nwst
greater_trochanter: gt gtr gtc grt gtro ftc tro troc
hip_center: hjc
thigh: thi th thap thad thlp thld
knee_lateral: kne kn lkn lfc fle lepi lep lek lk kax kd
knee_medial: mkn mfc fme mepi mep mek knm kni
patella: pat
knee_center: kjc
fibular_head: fh hf fib fax
tibial_tuberosity: tt ttc ttb tts
shank: sha shk shn sk tib ti tb tiap tiad tilat clf
malleolus_lateral: ank ak la lak lma lmal lm fal lank mal mall
malleolus_medial: ma mma mmal mm tam mank mak aki
ankle_center: ajc
heel: hee hel cal ca calc fcc phe dhe heb
heel_lateral: lhe lcal
mt1: mt1 fm1 fmh fmt1 met1 1mt 1st 1met meta1
mt2: toe mt2 fm2 smh fmt2 met2 2nd 2mt
mt5: mt5 fm5 vmh fmt5 met5 5th 5mt meta5 5meta met vm
hallux: hal hlx tip
mt1_base: p1mt pm1
mt5_base: p5mt pm5
midfoot: mfs cun
midfoot_lateral: mfl cub
spine: lum lumb lumc
pelvis_cluster: pv
foot_cluster: ft
"""
CODES = {
    code: landmark
    for landmark, _, codes in (line.partition(":") for line in _CODES.split("\n"))
    for code in codes.split()
}
"""Usual abbreviations of landmarks, without side and number."""
QUALIFIED = {
    ("elbow_lateral", "medial"): "elbow_medial", ("knee_lateral", "medial"): "knee_medial",
    ("malleolus_lateral", "medial"): "malleolus_medial", ("heel", "lateral"): "heel_lateral",
    ("wrist", "medial"): "wrist_ulnar", ("wrist", "lateral"): "wrist_radial", ("mt2", "medial"): "mt1",
    ("mt2", "lateral"): "mt5", ("acromion", "front"): "shoulder_front", ("acromion", "back"): "shoulder_back",
}  # fmt: skip
"""Landmarks of an abbreviation with a qualifier."""
_AFFIXES = {
    "lat": "lateral", "out": "lateral", "med": "medial", "in": "medial", "lo": "low", "hi": "top", "up": "top",
    "ant": "front", "post": "back", "l": "lateral", "m": "medial", "i": "medial", "f": "front", "b": "back",
    "p": "back", "a": "front", "superior": "top", "inferior": "low", "reg": "joint",
}  # fmt: skip
"""Qualifiers at the beginning or the end of an abbreviation."""
CENTERS = {
    "acromion": "shoulder_center", "elbow_lateral": "elbow_center", "wrist": "wrist_center",
    "greater_trochanter": "hip_center", "knee_lateral": "knee_center", "malleolus_lateral": "ankle_center",
    "upper_arm": "shoulder_center", "thigh": "hip_center", "shank": "knee_center", "mt2": "toe_center",
    "chest": "spine", "back_offset": "spine",
}  # fmt: skip
"""Joint centers that a part of the body means where the labels are those of joints, not of markers on skin."""


@lru_cache(maxsize=20_000)
def read_words(words: tuple[str, ...], keypoints: bool = False) -> str:
    """Return the landmark of a label's words, without its side; "" if they name no part of the body.

    Args:
        words: Words in lower case.
        keypoints: Whether the labels of the file are those of joints.
    """
    plain = tuple(word for word in words if word not in ("v", "virtual", "the", "of", "cluster", "marker"))
    joined = "".join(plain)
    vertebra = _VERTEBRA.match(joined)
    if vertebra and f"{vertebra[1]}{int(vertebra[2])}" in _VERTEBRAE:
        return _VERTEBRAE[f"{vertebra[1]}{int(vertebra[2])}"]
    starts = [sum(map(len, plain[:k])) for k in range(len(plain))]
    for pattern, landmark, qualified in _COMPILED:
        match = pattern.search(joined)
        # `ShinFrontHigh` is not a thigh: a name begins with a word, or lies within one
        if match and (match.start() in starts or not any(match.start() < k < match.end() for k in starts)):
            found = _qualifiers(plain, joined[: match.start()], joined[match.end() :])
            chosen = next((qualified[name] for name in found if name in qualified), "")
            return chosen or (CENTERS.get(landmark, landmark) if keypoints else landmark)
    return ""


def _qualifiers(words: Sequence[str], before: str, after: str) -> list[str]:
    """Return the qualifiers among the words, and in what precedes and follows the name of the part."""
    parts = (*words, before, after, after.rstrip("0123456789"), before.rstrip("0123456789"))
    return list(dict.fromkeys(_BY_WORD[part] for part in parts if part in _BY_WORD))


def qualify(stem: str, codes: Container[str]) -> tuple[str, str]:
    """Return the code in a stem and the qualifier before or after it; the stem itself and "" if there is none."""
    for affix, name in _AFFIXES.items():
        least = 2 if len(affix) > 1 else 3
        for rest in (stem.removesuffix(affix).rstrip("0123456789"), stem.removeprefix(affix)):
            if least <= len(rest) < len(stem) and rest in codes:
                return rest, name
    return stem, ""
