"""The networks that torch_twins.py compares: of torchvision and transformers, and definitions of what they lack."""
import collections

import torch
import torchvision
from torch import nn

M = torchvision.models


class LeNet(nn.Module):
    def __init__(self, outputs, size):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        height, width = (((n - 4) // 2 - 4) // 2 for n in size)
        self.fc1 = nn.Linear(16 * height * width, 120)
        self.fc2, self.fc3 = nn.Linear(120, 84), nn.Linear(84, outputs)

    def forward(self, x):
        pool = nn.functional.max_pool2d
        x = pool(self.conv1(x).relu(), 2)
        x = pool(self.conv2(x).relu(), 2)
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class Hugging(nn.Module):
    def __init__(self, outputs, size, channels, shape):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification

        self.shape = shape  # keys of [model]
        self.model = ViTForImageClassification(ViTConfig(
            hidden_size=shape["embed"], num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
            intermediate_size=shape["ffn"], image_size=size[0], patch_size=shape["patch"], num_labels=outputs,
            num_channels=channels, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

    def forward(self, x):
        return self.model(pixel_values=x).logits


def conv(dims):
    return {2: nn.Conv2d, 3: nn.Conv3d}[dims]


class NormedPair(nn.Module):
    """Two 3x3 convolutions with batch norms, whose parameters are those of "conv1", "conv1.norm", ..."""

    def __init__(self, dims, inputs, filters):
        super().__init__()
        norm = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[dims]
        for name, n in (("conv1", inputs), ("conv2", filters)):
            layer = conv(dims)(n, filters, 3, padding=1, bias=False)
            layer.norm = norm(filters)
            setattr(self, name, layer)

    def forward(self, x):
        for layer in self.conv1, self.conv2:
            x = layer.norm(layer(x)).relu()
        return x


class UNet(nn.Module):
    def __init__(self, outputs, size, channels, width, levels=4):
        super().__init__()
        dims, self.levels, self.shape = len(size), levels, {"embed": width}
        self.pool = {2: nn.functional.max_pool2d, 3: nn.functional.max_pool3d}[dims]
        for level in range(levels + 1):
            setattr(self, f"down{level}", NormedPair(dims, width << level - 1 if level else channels, width << level))
        for level in range(levels):
            pair = NormedPair(dims, width << level + 1, width << level)
            up = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[dims]
            pair.up = up(width << level + 1, width << level, 2, stride=2)
            setattr(self, f"up{level}", pair)
        self.head = conv(dims)(width, outputs, 1)

    def forward(self, x):
        kept = []
        for level in range(self.levels + 1):
            x = getattr(self, f"down{level}")(self.pool(x, 2) if level else x)
            kept.append(x)
        for level in reversed(range(self.levels)):
            up = getattr(self, f"up{level}")
            x = up(torch.cat([kept[level], up.up(x)], 1))
        return self.head(x)


class CosmoFlow(nn.Module):
    def __init__(self, outputs, size, channels):
        super().__init__()
        dims, left, self.pools, inputs = len(size), list(size), [], channels
        self.pool = {2: nn.functional.max_pool2d, 3: nn.functional.max_pool3d}[dims]
        for i in range(5):
            setattr(self, f"conv{i + 1}", conv(dims)(inputs, 32 << i, 3, padding=1))
            inputs = 32 << i
            self.pools.append(min(left) >= 2)
            if self.pools[-1]:
                left = [n // 2 for n in left]
        for n in left:
            inputs *= n
        self.dense1, self.dense2, self.dense3 = nn.Linear(inputs, 128), nn.Linear(128, 64), nn.Linear(64, outputs)

    def forward(self, x):
        act = lambda x: nn.functional.leaky_relu(x, 0.3)
        for i, pools in enumerate(self.pools):
            x = act(getattr(self, f"conv{i + 1}")(x))
            x = self.pool(x, 2) if pools else x
        return 1.2 * torch.tanh(self.dense3(act(self.dense2(act(self.dense1(x.flatten(1)))))))


class FieldViT(nn.Module):
    """Fields from the tokens of patches, with the names of `kintsugi export`; `relative`: the relative L2 loss."""

    def __init__(self, outputs, size, channels, shape, relative):
        super().__init__()
        self.shape, self.size, self.outputs, self.relative = shape, size, outputs, relative
        embed, ffn, patch = shape["embed"], shape["ffn"], shape["patch"]
        tokens = (size[0] // patch) * (size[1] // patch)
        sizes = {"vit.embeddings.position_embeddings": (1, tokens, embed), "decoder.bias": (outputs,),
                 "vit.embeddings.patch_embeddings.projection.weight": (embed, channels, patch, patch),
                 "vit.embeddings.patch_embeddings.projection.bias": (embed,),
                 "decoder.weight": (embed, outputs, patch, patch),
                 "vit.layernorm.weight": (embed,), "vit.layernorm.bias": (embed,)}
        for i in range(shape["layers"]):
            for name, (rows, columns) in {
                    "attention.attention.query": (embed, embed), "attention.attention.key": (embed, embed),
                    "attention.attention.value": (embed, embed), "attention.output.dense": (embed, embed),
                    "intermediate.dense": (ffn, embed), "output.dense": (embed, ffn)}.items():
                sizes[f"vit.encoder.layer.{i}.{name}.weight"] = (rows, columns)
                sizes[f"vit.encoder.layer.{i}.{name}.bias"] = (rows,)
            for name in ("layernorm_before", "layernorm_after"):
                sizes[f"vit.encoder.layer.{i}.{name}.weight"] = sizes[f"vit.encoder.layer.{i}.{name}.bias"] = (embed,)
        for name, shape_of in sizes.items():
            norm = "norm" in name and name.endswith("weight")
            start = 0.2 * torch.randn(shape_of) + (1 if norm else 0)
            self.register_parameter(name.replace(".", "/"), nn.Parameter(start))

    def forward(self, x):
        def of(name):
            return getattr(self, name.replace(".", "/"))

        def linear(h, name):
            return nn.functional.linear(h, of(name + ".weight"), of(name + ".bias"))

        def norm(h, name):
            return nn.functional.layer_norm(h, h.shape[-1:], of(name + ".weight"), of(name + ".bias"), 1e-12)

        projection, patch = "vit.embeddings.patch_embeddings.projection", self.shape["patch"]
        h = nn.functional.conv2d(x, of(projection + ".weight"), of(projection + ".bias"), stride=patch)
        grid = h.shape[2:]
        h = h.flatten(2).transpose(1, 2) + of("vit.embeddings.position_embeddings")
        for i in range(self.shape["layers"]):
            at = f"vit.encoder.layer.{i}."
            q, k, v = (linear(norm(h, at + "layernorm_before"), f"{at}attention.attention.{name}")
                       .unflatten(-1, (self.shape["heads"], -1)).transpose(1, 2) for name in ("query", "key", "value"))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            h = h + linear(mixed, at + "attention.output.dense")
            inner = nn.functional.gelu(linear(norm(h, at + "layernorm_after"), at + "intermediate.dense"))
            h = h + linear(inner, at + "output.dense")
        h = norm(h, "vit.layernorm")
        # Of each token the numbers of its patch: a linear layer and a rearrangement, as in NERSC's example.
        numbers = torch.einsum("bse,eopq->bsopq", h, of("decoder.weight"))
        numbers = numbers.unflatten(1, grid).permute(0, 3, 1, 4, 2, 5)
        return numbers.flatten(4).flatten(2, 3) + of("decoder.bias")[:, None, None]

    def loss(self, y, t):
        if not self.relative:
            return nn.functional.mse_loss(y, t)
        return ((y - t).flatten(1).norm(dim=1) / t.flatten(1).norm(dim=1)).mean()


def small_stem(model):
    """The stem of images of up to 64 pixels."""
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def of_channels(model, channels):
    """The same with other channels in the first convolution."""
    for parent in model.modules():
        for name, first in parent.named_children():
            if isinstance(first, nn.Conv2d):
                if first.in_channels != channels:
                    setattr(parent, name, nn.Conv2d(channels, first.out_channels, first.kernel_size, first.stride,
                                                    first.padding, bias=first.bias is not None))
                return model
    raise ValueError("no convolution")


# `build` of (outputs, size, channels), the size, and those of random configurations, each drawn alone unless `square`.
Network = collections.namedtuple("Network", "build size sizes objective square family",
                                 defaults=("classes", False, None))


def network(build, size, sizes):
    return Network(lambda o, s, c: of_channels(build(o, s), c), [size, size], sizes)


def fields(relative):
    shape = dict(layers=3, embed=48, heads=4, ffn=96, patch=8)
    return Network(lambda o, s, c: FieldViT(o, s, c, shape, relative), [32, 40], range(16, 49, 8), "fields",
                   family="vit")


def vit(size, sizes, **shape):
    return Network(lambda o, s, c: Hugging(o, s, c, shape), [size, size], sizes, square=True, family="vit")


NETWORKS = {
    "lenet": network(LeNet, 32, range(16, 41)),
    "alexnet": network(lambda o, _: M.alexnet(num_classes=o, dropout=0.0), 64, range(63, 81)),
    "vgg11": network(lambda o, _: M.vgg11(num_classes=o, dropout=0.0), 32, range(32, 49)),
    "vgg11_bn": network(lambda o, _: M.vgg11_bn(num_classes=o, dropout=0.0), 64, range(32, 49)),
    "resnet18": network(lambda o, _: small_stem(M.resnet18(num_classes=o)), 32, range(8, 33)),
    "resnet50": network(lambda o, _: M.resnet50(num_classes=o), 96, range(65, 81)),
    "convnext_tiny": network(
        lambda o, _: M.convnext_tiny(num_classes=o, stochastic_depth_prob=0.0, layer_scale=0.5), 64, range(32, 65)),
    "vit": vit(32, range(16, 49, 8), layers=3, embed=48, heads=4, ffn=96, patch=8),
    "vit_s": vit(224, [224], layers=12, embed=384, heads=6, ffn=1536, patch=16),
    "vit_mse": fields(False),
    "vit_relative_l2": fields(True),
    "unet": Network(lambda o, s, c: UNet(o, s, c, 6), [48, 32], range(16, 65, 16), "pixels"),
    "unet_3d": Network(lambda o, s, c: UNet(o, s, c, 4), [16, 32, 16], range(16, 33, 16), "pixels", family="unet"),
    "cosmoflow": Network(CosmoFlow, [16, 16, 16], range(16, 24), "numbers"),
}
