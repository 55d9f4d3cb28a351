"""A thirteenth set of networks for compare_networks.py (SET=thirteenth): one of each of twelve modules of timm, drawn by lot (seed 20261130131)
from the names that no other set has, once filters of convolutions were read in fragments and products with many columns of tiles left
normalizations to a dispatch of their own: pictures of at most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "efficientformerv2_l": 224,
    "hardcorenas_d": 224,
    "densenetblur121d": 224,
    "resnet32ts": 256,
    "cspnext_l": 224,
    "repghostnet_100": 224,
    "nf_regnet_b2": 240,
    "crossvit_small_240": 240,
    "resnest50d_4s2x40d": 224,
    "vit_relpos_small_patch16_224": 224,
    "maxvit_rmlp_small_rw_224": 224,
    "legacy_seresnet34": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
