"""An eleventh set of networks for compare_networks.py (SET=eleventh): one of each of twelve modules of timm, drawn by lot (seed 2026113011) from
the names that no other set has, once transposes of tokens joined groups of images with their channels last, LayerScale went into weights and
convolutions of pictures had a kernel of their own: pictures of at most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "selecsls60": 224,
    "lowformer_b15": 224,
    "mambaout_small": 224,
    "cait_s24_224": 224,
    "twins_svt_base": 224,
    "nest_small_jx": 224,
    "legacy_seresnet152": 224,
    "coat_small": 224,
    "lcnetv2_base": 224,
    "dpn92": 224,
    "tf_mixnet_m": 224,
    "efficientformerv2_s0": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
