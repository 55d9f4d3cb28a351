"""A sixteenth set of networks for compare_networks.py (SET=sixteenth): one of each of ten modules of timm, drawn by lot (seed 20261201742)
from the names that no other set has, once transposed convolutions, shuffles and filters of any number kept the channels last: pictures of at
most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "vit_small_patch16_36x1_224": 224,
    "iformer_m_distilled": 224,
    "xcit_small_12_p16_224": 224,
    "vit_srelpos_small_patch16_224": 224,
    "lowformer_b0": 224,
    "repvit_m2_3": 224,
    "hardcorenas_f": 224,
    "legacy_seresnet18": 224,
    "hgnet_small": 224,
    "mambaout_femto": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
