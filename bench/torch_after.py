"""A sixth set of networks for compare_networks.py (SET=after): one of each of twenty modules of timm, drawn by lot (seed 20261201) from the
names that no other set has, once channels-last and batch-norm-ahead were written: pictures of at most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "fasternet_t2": 224,
    "regnetz_040": 256,
    "tiny_vit_21m_224": 224,
    "convit_small": 224,
    "tnt_b_patch16_224": 224,
    "deit_tiny_patch16_224": 224,
    "fastvit_sa12": 256,
    "lowformer_e2": 224,
    "botnet50ts_256": 256,
    "mixer_b32_224": 224,
    "hardcorenas_c": 224,
    "legacy_seresnext26_32x4d": 224,
    "convmixer_1536_20": 224,
    "gcvit_small": 224,
    "hiera_small_224": 224,
    "tresnet_l": 224,
    "selecsls60b": 224,
    "mobilevit_xs": 256,
    "densenet169": 224,
    "levit_384": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
