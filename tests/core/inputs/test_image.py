"""Tests of images as input: non-local means, the refusal or conversion of unusual files, and the whole pixel grid."""

import io
import itertools
import json
import math
import re
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

import attention_core as ac
from attention_core.__main__ import main
from attention_core.errors import InputError
from attention_core.experiments.task import load
from attention_core.inputs import ImageSource
from attention_core.inputs.image import FOLDER, PATCHES, PHOTOS, read_photo
from attention_core.limits import HOSTED, OWN_MACHINE


def file_of(image, kind="PNG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def ramp(height=20, width=20):
    return np.linspace(0, 255, height * width).reshape(height, width).astype(np.uint8)


def non_local_means(noisy, patch, h):
    """Return non-local means of an image ``[s, s, c]``, computed pixel by pixel."""
    side, reach = len(noisy), patch // 2
    padded = np.pad(noisy, ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
    offsets = np.arange(-reach, reach + 1)
    kernel = np.exp(-(offsets[:, None] ** 2 + offsets**2) / (2 * ((patch - 1) / 4) ** 2))[..., None]
    kernel = np.broadcast_to(kernel, (patch, patch, noisy.shape[-1]))
    places = list(itertools.product(range(side), repeat=2))
    cut = {(r, c): padded[r : r + patch, c : c + patch] for r, c in places}
    out = np.empty_like(noisy)
    for here in places:
        weights = [math.exp(-np.average((cut[here] - cut[there]) ** 2, weights=kernel) / h**2) for there in places]
        out[here] = np.average([noisy[there] for there in places], axis=0, weights=weights)
    return out


@pytest.mark.parametrize(("photo", "patch"), [("portrait", 3), ("camera", 5)])
def test_softmax_attention_equals_non_local_means(photo, patch):
    source = ImageSource(photo, size=16, patch=patch, strength=0.2)
    noisy = source.noisy()
    found = ac.get("softmax").attend(*source.load().tensors)[0].reshape(noisy.shape)
    wanted = non_local_means(noisy.numpy(), patch, source.strength)
    np.testing.assert_allclose(found.numpy(), wanted, atol=2e-6)


def test_softmax_equals_non_local_means_of_scikit_image_except_omitted_weights():
    """scikit-image leaves out a pair once the distance of some rows of its patches is above 5.

    It also approximates the exponential, which changes a pixel by up to 0.003 here.
    """
    restoration = pytest.importorskip("skimage.restoration")
    source = ImageSource(size=32)
    noisy, (q, k, v) = source.noisy(), source.load().tensors
    wanted = restoration.denoise_nl_means(
        noisy.numpy(), source.patch, source.size, h=source.strength, fast_mode=False, channel_axis=-1
    )
    patches = k[0, :, :-1].double().reshape(len(k[0]), 3, source.patch, source.patch)
    distance = torch.zeros(len(patches), len(patches), dtype=torch.float64)
    kept = torch.ones_like(distance, dtype=torch.bool)
    for row in range(source.patch):
        kept &= distance <= 5
        distance = distance + torch.cdist(*[patches[:, :, row].flatten(1)] * 2).square() / source.strength**2
    weights = (-distance).exp()
    cut = torch.where(kept, weights, 0.0)
    same = (cut / cut.sum(-1, keepdim=True) @ v[0].double()).reshape(noisy.shape)
    np.testing.assert_allclose(same.numpy(), wanted, atol=3e-3)
    found = ac.get("softmax").attend(q, k, v)[0].reshape(noisy.shape)
    lost = (1 - cut.sum(-1) / weights.sum(-1)).reshape(noisy.shape[:2])  # the share of the weight
    allowed = lost[..., None] * (noisy.max() - noisy.min()) + 3e-3
    assert (np.abs(found.numpy() - wanted) <= allowed.numpy()).all()


def test_noise_has_the_requested_standard_deviation_and_depends_on_the_seed():
    source = ImageSource(noise=0.1)
    added = source.noisy() - source.clean()
    assert added.std().item() == pytest.approx(0.1, rel=0.02)
    assert torch.equal(ImageSource(noise=0.1).noisy(), source.noisy())
    [(first, same), (second, other)] = source.reseeded(2)
    assert (first, second) == (0, 1)
    assert same == source
    assert not torch.equal(other.noisy(), source.noisy())


@pytest.mark.parametrize("photo", PHOTOS)
@pytest.mark.parametrize("patch", PATCHES)
def test_the_record_has_the_grid_and_sizes_of_the_image(photo, patch):
    qkv = ImageSource(photo, size=16, patch=patch).load()
    channels = 1 if photo == "camera" else 3
    assert qkv.grid == (16, 16)
    assert (qkv.n, qkv.v.shape[-1], qkv.q.shape[-1]) == (256, channels, patch**2 * channels + 1)
    assert qkv.tokens[17] == "1,1"
    assert ac.inputs.first_tokens(qkv, 20).grid is None


def test_the_included_photographs_are_small_and_their_licences_are_stated():
    licences = (FOLDER / "LICENSES.txt").read_text()
    for photo in PHOTOS:
        assert (FOLDER / f"{photo}.png").stat().st_size <= 40_000
        assert f"{photo}.png" in licences


def test_a_grid_too_large_for_a_matrix_is_drawn_smaller_but_measured_completely():
    source = ImageSource(size=48)
    drawn = source.load()
    assert (drawn.n, drawn.total_tokens) == (1024, 2304)
    assert "at most 32 × 32 pixels" in str(drawn.notices[-1])
    assert source.whole().n == source.max_tokens(drawn) == 2304
    assert torch.equal(source.at_length(2000, 2304, load).v, source.whole().v[:, :2000])


def test_a_transparent_image_is_shown_on_white():
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    pixels, notices = read_photo(file_of(image), "a.png", 16)
    assert pixels.shape == (16, 16, 3)
    assert pixels.min() == 1
    assert "Transparent parts are shown in white" in " ".join(map(str, notices))


def test_cmyk_colours_are_converted():
    pixels, notices = read_photo(file_of(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG"), "a.jpg", 16)
    red, green, _ = pixels.mean((0, 1)).tolist()
    assert red > 0.8 > 0.3 > green
    assert ["CMYK" in str(each) for each in notices] == [True]


def test_16_bit_images_are_converted():
    image = Image.fromarray(ramp(16, 16).astype(np.uint16) * 257)
    pixels, notices = read_photo(file_of(image), "a.png", 16)
    np.testing.assert_allclose(pixels[..., 0].numpy(), ramp(16, 16) / 255, atol=1e-9)
    assert ["16 bits" in str(each) for each in notices] == [True]


def test_only_the_first_frame_of_an_animation_is_used():
    frames = [Image.new("L", (16, 16), grey) for grey in (51, 255)]
    data = file_of(frames[0], save_all=True, append_images=frames[1:])
    pixels, notices = read_photo(data, "a.png", 16)
    assert pixels.unique().tolist() == [0.2]
    assert ["first frame" in str(each) for each in notices] == [True]


def test_the_central_square_is_used_and_a_photo_is_turned_upright():
    grey = np.zeros((20, 40), np.uint8)
    grey[:, 10:30] = 255
    pixels, notices = read_photo(file_of(Image.fromarray(grey)), "a.png", 20)
    assert pixels.min() == 1
    assert "(40 × 20 pixels)" in str(notices[0])
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    turned = read_photo(file_of(Image.fromarray(ramp()), "JPEG", exif=exif, quality=95), "a.jpg", 20)[0]
    assert turned[:, 0].mean() > turned[:, -1].mean() + 0.5  # the dark first row is now the last column


def huge_png():
    """Return a PNG of a few bytes whose header promises 30,000 by 30,000 pixels."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


BAD = {
    "empty": (b"", "a.png is empty"),
    "one pixel": (file_of(Image.new("L", (1, 1))), "has 1 × 1 pixels"),
    "text": (b"hello", "is not a PNG or JPEG image"),
    "gif": (file_of(Image.new("L", (16, 16)), "GIF"), "is not a PNG or JPEG image"),
    "cut": (file_of(Image.effect_noise((40, 40), 60))[:500], "is damaged"),
    "bomb": (huge_png(), "has too many pixels"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_image_is_refused_with_one_message(kind):
    data, message = BAD[kind]
    with pytest.raises(InputError, match=re.escape(message)):
        ImageSource.of("a.png", data).load()


def test_a_file_of_too_many_bytes_is_refused(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert HOSTED.photo_bytes < OWN_MACHINE.photo_bytes
    with pytest.raises(InputError, match="of at most"):
        ImageSource.of("a.png", bytes(HOSTED.photo_bytes + 1)).load()
    with pytest.raises(InputError, match="grid from 16 to 48"):
        ImageSource(size=49).load()


@pytest.mark.parametrize(
    "settings",
    [{"size": 15}, {"patch": 4}, {"noise": math.nan}, {"noise": 2.0}, {"strength": 0.0}, {"seed": -1}, {"photo": "x"}],
)
def test_settings_out_of_bounds_are_refused(settings):
    with pytest.raises(InputError, match="Choose"):
        ImageSource(**settings).load()


def test_the_code_of_a_source_recreates_it():
    for source in (ImageSource("camera", size=20, noise=0.2), ImageSource(positions="rope")):
        assert eval(source.code, {"ac": ac}) == source
    own = ImageSource.of("me.png", file_of(Image.fromarray(ramp())), size=20)
    assert 'open("your-photo.png", "rb").read()' in own.code
    assert own.load().n == 400


COMMAND = ["image", "--size", "16", "--variants", "softmax", "linear", "--seed", "3"]


def test_the_command_prints_rows_as_json(capsys):
    assert main([*COMMAND, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"variant", "psnr", "psnr_noisy", "psnr_mean", "seconds"} <= set(rows[0])
    assert [row["variant"] for row in rows] == ["softmax", "linear"]
    source = ImageSource(size=16, seed=3)
    error = (source.noisy() - source.clean()).square().mean().item()
    assert rows[0]["psnr_noisy"] == pytest.approx(-10 * math.log10(error), abs=1e-4)


def test_the_command_reads_a_file_and_prints_a_table_whose_columns_are_aligned(capsys, tmp_path):
    path = tmp_path / "mine.png"
    path.write_bytes(file_of(Image.fromarray(ramp(16, 16))))
    assert main([*COMMAND, "--file", str(path), "--noise", "0.2"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["softmax", "linear"]
    assert {len(line) for line in lines} == {len(head)}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--variants", "none_such"], "none_such"),
        (["--variants", "softmax", "--size", "8"], "grid from 16 to 64"),
        (["--variants", "softmax", "--file", "no_such.png"], "no_such.png cannot be read"),
    ],
)
def test_an_impossible_command_ends_with_one_error_message(capsys, arguments, reason):
    assert main(["image", *arguments]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err
    assert "Traceback" not in captured.err
