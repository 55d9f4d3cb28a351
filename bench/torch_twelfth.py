"""A twelfth set of networks for compare_networks.py (SET=twelfth): one of each of twelve modules of timm, drawn by lot (seed 2026113012) from
the names that no other set has, once normalizations of rows went into products, tensors were added behind activations and patches of
pictures became rows of products: pictures of at most 300 x 300, at most 70 million parameters."""

from torch_lot import of_images

IMAGES = {
    "dla169": 224,
    "edgenext_x_small": 256,
    "inception_next_atto": 224,
    "repghostnet_150": 224,
    "crossvit_tiny_240": 240,
    "semnasnet_075": 224,
    "mambaout_small_rw": 224,
    "swinv2_cr_small_ns_256": 256,
    "lambda_resnet26rpt_256": 256,
    "focalnet_small_srf": 224,
    "nf_seresnet26": 224,
    "pvt_v2_b2_li": 224,
}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
