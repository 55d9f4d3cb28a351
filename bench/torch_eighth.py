"""An eighth set of networks for compare_networks.py (SET=eighth): one of each of twelve modules of timm, drawn by lot (seed 20261130) from the
names that no other set has, once tensors were read and written in runs of others: pictures of at most 300 x 300, at most 70 million
parameters."""

from torch_lot import of_images

IMAGES = {
    "efficientvit_b0": 224,
    "resnest50d": 224,
    "ghostnet_050": 224,
    "test_mambaout": 160,
    "mobilevitv2_150": 256,
    "halonet_h1": 256,
    "regnetx_120": 224,
    "rexnetr_150": 224,
    "swinv2_small_window16_256": 256,
    "deit_small_patch16_224": 224,
    "starnet_s3": 224,
    "vovnet39a": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
