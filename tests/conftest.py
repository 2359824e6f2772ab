"""One torch thread: on a busy machine with few cores, threads that wait for each other take many times longer."""

import torch

torch.set_num_threads(1)
