"""A test that a program's own model can use the lab's attention by the name that ``swapped`` recommends."""

import subprocess
import sys

import pytest

SWAP = """
import re
import torch
from transformers import AutoModel, LlamaConfig
tiny = LlamaConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=32)
ids = torch.arange(6)[None]
plain = AutoModel.from_config(tiny)
try:
    with ac.model_patching.swapped(plain, {0: ac.get("local", window=2)}):
        raise SystemExit("A model that does not attend through the interface was not refused.")
except ac.LabError as error:
    name = re.search('attn_implementation="(.*?)"', str(error)).group(1)
model = AutoModel.from_config(tiny, attn_implementation=name)
model.load_state_dict(plain.state_dict())
with torch.no_grad():
    before = model(input_ids=ids).last_hidden_state
    assert torch.allclose(before, plain(input_ids=ids).last_hidden_state, atol=1e-5)
    with ac.surgery.swapped(model, {0: ac.get("local", window=2)}):
        inside = model(input_ids=ids).last_hidden_state
    assert not torch.allclose(before, inside)
    assert torch.equal(before, model(input_ids=ids).last_hidden_state)
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import sys; import attention_core as ac; assert 'transformers' not in sys.modules",
        "import transformers.modeling_utils; import attention_core as ac",
    ],
)
def test_importing_the_library_registers_the_attention_name(imports):
    done = subprocess.run([sys.executable, "-c", imports + SWAP], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
