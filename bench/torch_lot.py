"""A fifth set of networks for compare_networks.py (SET=lot): one of each of 46 modules of timm, drawn by lot (seed 20261130) from the names that
no other set has, with pictures of at most 300 x 300 and at most 70 million parameters."""

import timm
import torch

IMAGES = {
    "coat_lite_small": 224,
    "coatnet_rmlp_1_rw_224": 224,
    "convmixer_1024_20_ks9_p14": 224,
    "davit_small": 224,
    "deit_small_distilled_patch16_224": 224,
    "dpn48b": 224,
    "edgenext_small_rw": 256,
    "efficientformer_l3": 224,
    "efficientvit_l1": 224,
    "ese_vovnet39b": 224,
    "fastvit_sa24": 256,
    "focalnet_tiny_lrf": 224,
    "ghostnetv2_160": 224,
    "gmlp_ti16_224": 224,
    "hgnetv2_b5": 224,
    "hiera_small_abswin_256": 256,
    "hieradet_small": 256,
    "hrnet_w30": 224,
    "lamhalobotnet50ts_256": 256,
    "lowformer_b3": 224,
    "mambaout_kobe": 224,
    "mobilevitv2_125": 256,
    "mvitv2_small_cls": 224,
    "nest_base": 224,
    "nextvit_large": 224,
    "nf_regnet_b1": 256,
    "pit_ti_distilled_224": 224,
    "pvt_v2_b4": 224,
    "rdnet_small": 224,
    "regnetx_004": 224,
    "regnetz_d8": 256,
    "repvit_m3": 224,
    "resnest101e": 256,
    "rexnetr_130": 224,
    "selecsls42": 224,
    "shvit_s3": 224,
    "starnet_s050": 224,
    "swiftformer_xs": 224,
    "swin_s3_tiny_224": 224,
    "tiny_vit_5m_224": 224,
    "tnt_s_legacy_patch16_224": 224,
    "twins_pcpvt_large": 224,
    "visformer_tiny": 224,
    "vit_medium_patch32_clip_224": 224,
    "vit_relpos_medium_patch16_rpn_224": 224,
    "xception65": 299,
}


def of_images(sizes, batch):
    """For each network of timm a function that makes it, and its input, by the sizes of pictures."""

    def of_timm(name, size):
        return lambda: (timm.create_model(name, pretrained=False, exportable=True), (torch.randn(batch, 3, size, size),))

    return {name: of_timm(name, size) for name, size in sizes.items()}


def made(batch):
    """For each network a function that makes it, and its input."""
    return of_images(IMAGES, batch)
