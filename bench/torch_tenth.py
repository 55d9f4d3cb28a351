"""A tenth set of networks for compare_networks.py (SET=tenth): one of each of twelve modules of timm, drawn by lot (seed 2026113010) from the
names that no other set has, once larger tiles of products and reads between them were there: pictures of at most 300 x 300, at most 70 million
parameters."""

from torch_lot import of_images

IMAGES = {
    "mobilevitv2_175": 256,
    "efficientvit_m5": 224,
    "eca_halonext26ts": 256,
    "darknet17": 256,
    "resnetaa50": 224,
    "regnetx_002": 224,
    "maxvit_pico_rw_256": 256,
    "fastvit_mci0": 256,
    "pit_xs_distilled_224": 224,
    "mobilenetv3_large_100": 224,
    "hardcorenas_e": 224,
    "repvit_m0_9": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
