"""A ninth set of networks for compare_networks.py (SET=ninth): one of each of fourteen modules of timm, drawn by lot (seed 2026113009) from the
names that no other set has, once groups of few channels, slices and branches were computed with the channels last or together: pictures of at
most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "darknetaa53": 256,
    "nextvit_base": 224,
    "xcit_small_24_p16_224": 224,
    "pvt_v2_b2": 224,
    "vit_relpos_medium_patch16_cls_224": 224,
    "vit_small_patch16_dinov3": 256,
    "swinv2_cr_tiny_ns_224": 224,
    "gernet_l": 256,
    "xception71": 299,
    "legacy_seresnext101_32x4d": 224,
    "starnet_s1": 224,
    "fastvit_mci1": 256,
    "cpubone_b1_dwnorm": 256,
    "mobilevitv2_050": 256,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
