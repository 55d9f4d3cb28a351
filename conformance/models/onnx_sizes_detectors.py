"""Whole detectors of torchvision with random weights for onnx_sizes.py: suppression, pictures that are scaled as the model computes it of their
sizes, boxes as many as data decide, masks that a loop pastes.

    onnx_sizes_detectors.py [--cache DIR] [--exporter dynamo] [--few] FOLDER [NAME...]

Weights are drawn, and scaled so that what each layer gives for a photograph has a variance of 1. Photographs are those of the package scikit-image.
"""
import argparse
import pathlib

import numpy as np
import torch
import torchvision
from onnx_sizes import save
from onnx_sizes_real import photograph, planes
from torchvision.models import detection
from torchvision.models.detection import backbone_utils
from torchvision.ops import boxes

SHORT, LONG = 128, 214
# llvmpipe binds no more than 128 MiB, which are not enough for samples of 1,000 proposals.
PROPOSALS = {"rpn_post_nms_top_n_test": 200}
SIZES = [(72, 88), (64, 64), (96, 80), (128, 160), (200, 100), (256, 130)]


def pyramid():
    return backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)


def ssdlite():
    return detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=9, detections_per_img=50, score_thresh=0.01)


def faster():
    return detection.FasterRCNN(pyramid(), num_classes=7, min_size=SHORT, max_size=LONG, box_score_thresh=0.01, **PROPOSALS)


def faster_resnet50():
    return detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=7, min_size=SHORT, max_size=LONG, box_score_thresh=0.01, **PROPOSALS)


def faster_mobilenet():
    return detection.fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None, num_classes=7, min_size=SHORT, max_size=LONG, box_score_thresh=0.01, **PROPOSALS)


def mask():
    return detection.MaskRCNN(pyramid(), num_classes=7, min_size=SHORT, max_size=LONG, box_score_thresh=0.2, box_detections_per_img=12, **PROPOSALS)


def keypoint():
    return detection.KeypointRCNN(pyramid(), num_classes=2, min_size=SHORT, max_size=LONG, num_keypoints=5, box_score_thresh=0.01, box_detections_per_img=12, **PROPOSALS)


def retina():
    return detection.RetinaNet(pyramid(), num_classes=7, min_size=SHORT, max_size=LONG, score_thresh=0.1)


def fcos():
    return detection.FCOS(pyramid(), num_classes=7, min_size=SHORT, max_size=LONG, score_thresh=0.1)


def ssd():
    return detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=5, score_thresh=0.1)


CASES = {own.__name__: own for own in (ssdlite, faster, faster_resnet50, faster_mobilenet, mask, keypoint, retina, fcos, ssd)}
PHOTOGRAPHS = [("astronaut", None), ("chelsea", None), ("coffee", None)]


def scaled(model, image):
    """Draws the weights, and scales those of each layer in the order in which it is run."""
    torch.manual_seed(7)
    seen, hooks = set(), []
    kinds = (torch.nn.Conv2d, torch.nn.Linear, torch.nn.ConvTranspose2d)

    def fit(layer, _, output):
        if layer in seen or output.numel() < 2:
            return None
        seen.add(layer)
        deviation = output.std().clamp(min=1e-6)
        layer.weight.data /= deviation
        if layer.bias is not None:
            layer.bias.data.zero_()
        return output / deviation

    for layer in model.modules():
        if isinstance(layer, kinds):
            torch.nn.init.normal_(layer.weight, std=0.05)
            hooks.append(layer.register_forward_hook(fit))
    with torch.no_grad():
        model.eval()([torch.from_numpy(image[0])])
    for hook in hooks:
        hook.remove()
    return model


class Alone(torch.nn.Module):
    """A detector of one picture, with its results in a row."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, image):
        found = self.model([image[0]])[0]
        return tuple(found[name] for name in self.names)


def export(model, image, names, path, exporter):
    if exporter == "torchscript":
        torch.onnx.export(model, image, str(path), dynamo=False, opset_version=18, input_names=["image"], output_names=names,
                          dynamic_axes={"image": {2: "height", 3: "width"}})
        return
    # torchvision asks how many boxes there are, which this exporter does not know.
    boxes.batched_nms = lambda own, scores, kinds, overlap: torchvision.ops.nms(own + (kinds.to(own) * (own.max() + 1))[:, None], scores, overlap)
    sizes = {2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    torch.onnx.export(model, (image,), dynamo=True, input_names=["image"], output_names=names, dynamic_shapes=(sizes,), verbose=False).save(str(path))


def few_boxes(model, scores):
    """A threshold in the widest gap in the middle of these scores: how many boxes there are, none among it, depends on the picture."""
    own = model.roi_heads if hasattr(model, "roi_heads") else model
    middle = scores.sort().values[len(scores) // 2 : -len(scores) // 8]
    widest = int((middle[1:] - middle[:-1]).argmax())
    own.score_thresh = float(middle[widest : widest + 2].mean())


def make(name, folder, cache, exporter, few):
    first = planes(photograph("coffee", cache), SIZES[3])
    model = scaled(CASES[name](), first)
    with torch.no_grad():
        found = model([torch.from_numpy(first[0])])[0]
        names = list(found)
        if few:
            few_boxes(model, found["scores"])
        path = folder / f"{name}{'_few' if few else ''}.{exporter}.onnx"
        export(Alone(model, names).eval(), torch.from_numpy(first), names, path, exporter)
    whole = PHOTOGRAPHS if name in ("ssdlite", "ssd") else []
    small = [("coffee", size) for size in SIZES]
    save(path, ["image"], [[planes(photograph(own, cache), size)] for own, size in whole + small])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("packages"))
    parser.add_argument("--exporter", choices=["torchscript", "dynamo"], default="torchscript")
    parser.add_argument("--few", action="store_true", help="with a threshold that leaves fewer boxes than a detector gives at most")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or CASES:
        make(name, args.folder, args.cache, args.exporter, args.few)


if __name__ == "__main__":
    main()
