"""A fourteenth set of networks for compare_networks.py (SET=fourteenth): one of each of ten modules of timm, drawn by lot (seed 20261201140)
from the names that no other set has, once products left sums of rows for the normalized product behind: pictures of at most 300 x 300, at
most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "mixer_s16_224": 224,
    "fasternet_s": 224,
    "coatnet_0_224": 224,
    "mvitv2_base_cls": 224,
    "skresnet50": 224,
    "resnetv2_152": 224,
    "efficientvit_m4": 224,
    "regnetv_064": 224,
    "twins_pcpvt_small": 224,
    "levit_conv_384": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
