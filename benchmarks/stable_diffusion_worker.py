"""One step of Stable Diffusion 1.5's U-Net with several kernels and ways of merging tokens.

`stable_diffusion.py` starts it, in an environment with diffusers and tomesd, with a job as JSON:
sizes, rounds and the ratio of merging. Its output is one JSON object per line, its progress goes to
stderr. Shapes: B batch, C channels, H height, W width, S prompt tokens, D width of the prompt.
"""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import tomesd
import torch
from diffusers import UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
from stable_diffusion_parts import Clock, counted, timed_processors
from torch import Tensor

from seq2see.bench.memory import peak_resident_mb
from seq2see.bench.rounds import turns
from seq2see.models.merged_diffusers import merge_in

# unet/config.json of stable-diffusion-v1-5
CONFIGURATION = {
    "act_fn": "silu",
    "attention_head_dim": 8,  # the number of heads, in spite of its name
    "block_out_channels": (320, 640, 1280, 1280),
    "center_input_sample": False,
    "cross_attention_dim": 768,
    "down_block_types": (*("CrossAttnDownBlock2D",) * 3, "DownBlock2D"),
    "downsample_padding": 1,
    "flip_sin_to_cos": True,
    "freq_shift": 0,
    "in_channels": 4,
    "layers_per_block": 2,
    "mid_block_scale_factor": 1,
    "norm_eps": 1e-5,
    "norm_num_groups": 32,
    "out_channels": 4,
    "sample_size": 64,
    "up_block_types": ("UpBlock2D", *("CrossAttnUpBlock2D",) * 3),
}
PIXELS = 8  # of a picture, in height and width, for one position of the latent picture
BATCH = 2  # guidance predicts with and without the prompt
PROMPT_TOKENS = 77  # every prompt is padded to the length of the text encoder
TIMESTEP = 500
KERNELS = {"fused": AttnProcessor2_0, "open": AttnProcessor}


@dataclass(frozen=True)
class Setting:
    """The kernel of attention, and the library that merges its tokens."""

    kernel: str  # fused: scaled_dot_product_attention; open: products and a softmax
    merging: str  # none, tomesd or seq2see


SETTINGS = (
    Setting("fused", "none"),
    Setting("fused", "tomesd"),
    Setting("fused", "seq2see"),
    Setting("open", "none"),
    Setting("open", "tomesd"),
)


def random_unet(configuration: dict[str, Any]) -> UNet2DConditionModel:
    """Build a U-Net with random weights, the same each time, that keep the scale of states.

    They are drawn once: diffusers would initialise them before, which takes longer than a step.
    """
    with torch.device("meta"):
        unet = UNet2DConditionModel(**configuration)
    unet.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in unet.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, weight[0].numel() ** -0.5, generator=generator)
            else:
                weight.fill_(0 if name.endswith("bias") else 1)  # scales of norms are vectors, too
    return unet.eval()


@dataclass(frozen=True)
class Inputs:
    """Latent pictures (B, C, H, W) and encoded prompts (B, S, D)."""

    latents: Tensor
    prompts: Tensor


def random_inputs(unet: UNet2DConditionModel, size: int) -> Inputs:
    """Draw a latent picture for `size` × `size` pixels, twice, and a different prompt for each."""
    generator = torch.Generator().manual_seed(2)
    side = size // PIXELS
    shape = (1, unet.config.in_channels, side, side)
    latents = torch.randn(shape, generator=generator).repeat(BATCH, 1, 1, 1)  # (B, C, H, W)
    prompt_shape = (BATCH, PROMPT_TOKENS, unet.config.cross_attention_dim)
    return Inputs(latents, torch.randn(prompt_shape, generator=generator))


@torch.inference_mode()
def predict(unet: UNet2DConditionModel, inputs: Inputs) -> Tensor:
    """Predict the noise (B, C, H, W) of one step."""
    prediction: Tensor = unet(inputs.latents, TIMESTEP, encoder_hidden_states=inputs.prompts).sample
    return prediction


@contextmanager
def applied(
    unet: UNet2DConditionModel, setting: Setting, ratio: float, processors: Any = None
) -> Iterator[None]:
    """Compute attention and merge tokens as in a setting, within a with block.

    `processors`, by name, take the place of the setting's kernel.
    """
    unet.set_attn_processor(processors or KERNELS[setting.kernel]())
    if setting.merging == "tomesd":
        tomesd.apply_patch(unet, ratio=ratio)
    if setting.merging == "seq2see":
        merge_in(unet, ratio)
    try:
        yield
    finally:
        tomesd.remove_patch(unet)
        merge_in(unet, 0)


def parts(
    unet: UNet2DConditionModel, inputs: Inputs, setting: Setting, ratio: float
) -> dict[str, float]:
    """Return the seconds of each part in one step."""
    clock = Clock()
    processors = timed_processors(unet, KERNELS[setting.kernel](), clock)
    with applied(unet, setting, ratio, processors), counted(unet, clock):
        clock.start()
        predict(unet, inputs)
        return clock.stop()


def figures(
    unet: UNet2DConditionModel, inputs: Inputs, setting: Setting, ratio: float
) -> dict[str, float]:
    """Return the seconds of one step and, on Linux, the peak of resident memory meanwhile."""
    with applied(unet, setting, ratio):
        forgotten = _forget_peak()
        started = time.perf_counter()
        prediction = predict(unet, inputs)
        seconds = time.perf_counter() - started
    if not prediction.isfinite().all():
        raise SystemExit(f"{setting}: the prediction is not finite")
    return {"seconds": seconds} | ({"peak_mb": peak_resident_mb()} if forgotten else {})


def _forget_peak() -> bool:
    """Reset the peak of this process to what it holds now; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def measure(
    unet: UNet2DConditionModel,
    size: int,
    job: dict[str, Any],
    emit: Callable[[dict[str, Any]], None],
) -> None:
    """Measure all settings at one size: seconds by part once, then the rounds."""
    inputs = random_inputs(unet, size)
    predict(unet, inputs)  # libraries are loaded on first use
    for setting in SETTINGS:
        by_part = parts(unet, inputs, setting, job["ratio"])
        say(f"{size}² · parts · {setting.kernel}, {setting.merging}: {sum(by_part.values()):.2f} s")
        emit({"size": size, **asdict(setting), "parts": by_part})
    for number, setting in turns(SETTINGS, range(1, job["rounds"] + 1), alternate=True):
        measured = figures(unet, inputs, setting, job["ratio"])
        what = f"{size}² · round {number}/{job['rounds']} · {setting.kernel}, {setting.merging}"
        say(f"{what}: {measured['seconds']:.2f} s")
        emit({"size": size, **asdict(setting), "round": number, "figures": measured})


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def emit(row: dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)


def main() -> None:
    job = json.loads(sys.argv[1])
    say("building the U-Net …")
    unet = random_unet(CONFIGURATION)
    names = ("diffusers", "tomesd", "torch")
    versions = {"python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in names}
    emit(
        {
            "parameters": sum(weight.numel() for weight in unet.parameters()),
            "batch": BATCH,
            "prompt_tokens": PROMPT_TOKENS,
            "dtype": str(unet.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "versions": versions,
        }
    )
    for size in job["sizes"]:
        try:
            measure(unet, size, job, emit)
        except RuntimeError as error:
            if "DefaultCPUAllocator" not in str(error):
                raise
            raise SystemExit(f"{size}²: not enough memory; --size 256 needs less") from None


if __name__ == "__main__":
    main()
