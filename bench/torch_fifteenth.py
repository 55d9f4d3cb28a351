"""A fifteenth set of networks for compare_networks.py (SET=fifteenth): one of each of ten modules of timm, drawn by lot (seed 20261201531)
from the names that no other set has, once groups of channels were normalized with the channels last and attention took heads of any multiple
of four elements: pictures of at most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "regnetx_004_tv": 224,
    "dla102": 224,
    "resmlp_24_224": 224,
    "res2net50_26w_8s": 224,
    "edgenext_base": 256,
    "tf_mobilenetv3_small_100": 224,
    "vit_srelpos_medium_patch16_224": 224,
    "gcvit_tiny": 224,
    "densenet201": 224,
    "tf_efficientnet_es": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
