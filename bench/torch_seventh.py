"""A seventh set of networks for compare_networks.py (SET=seventh): one of each of fourteen modules of timm, drawn by lot (seed 20261202) from the
names that no other set has, once convolutions over images with their channels last were written: pictures of at most 300 x 300, at most 70
million parameters."""

from torch_lot import of_images

IMAGES = {
    "starnet_s150": 224,
    "shvit_s4": 256,
    "hgnet_tiny": 224,
    "pvt_v2_b3": 224,
    "convnext_pico_ols": 224,
    "deit3_medium_patch16_224": 224,
    "dpn98": 224,
    "repghostnet_130": 224,
    "swinv2_tiny_window16_256": 256,
    "hardcorenas_a": 224,
    "legacy_seresnet50": 224,
    "xception65p": 299,
    "vit_small_patch16_rope_ape_224": 224,
    "repvgg_b1": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
