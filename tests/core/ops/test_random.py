import torch

from attention_core.ops.random import TILE, generator, normal, normal_table

F32, F64 = torch.zeros((), dtype=torch.float32), torch.zeros((), dtype=torch.float64)


def test_draws_depend_only_on_seed_and_stream():
    before = torch.get_rng_state()
    draws = [
        normal((40,), seed, F32, *stream) for seed, stream in ((0, ()), (1, ()), (0, (0,)), (0, (1,)), (0, (0, 1)))
    ]
    assert len({tuple(d.tolist()) for d in draws}) == len(draws)
    assert torch.equal(normal((40,), 0, F32, 1), draws[3])
    assert torch.equal(torch.get_rng_state(), before)


def test_every_precision_gets_the_same_numbers():
    wide = normal((5, 7), 3, F64)
    assert wide.dtype == torch.float64
    assert torch.equal(wide.float(), normal((5, 7), 3, F32))
    assert torch.equal(wide.bfloat16(), normal((5, 7), 3, F32.bfloat16()))
    table = normal_table(range(70), 9, 3, F64)
    assert torch.equal(table.float(), normal_table(range(70), 9, 3, F32))


def test_the_default_type_and_device_of_torch_have_no_effect():
    drawn = normal((5, 7), 3, F32), normal_table(range(70), 9, 3, F32)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            again = normal((5, 7), 3, F32), normal_table(range(70), 9, 3, F32)
    finally:
        torch.set_default_dtype(before)
    assert all(map(torch.equal, again, drawn))


def test_recorded_random_numbers_do_not_change():
    torch.testing.assert_close(normal((3,), 0, F64), PINNED, atol=1e-5, rtol=0)
    torch.testing.assert_close(normal_table(range(TILE, TILE + 1), 3, 0, F64)[0], PINNED_ROW, atol=1e-5, rtol=0)


PINNED = torch.tensor([-1.612418, -0.160537, -0.550678], dtype=torch.float64)
PINNED_ROW = torch.tensor([-0.113834, 0.339755, -0.685865], dtype=torch.float64)


def test_part_of_the_table_equals_the_whole_table():
    whole = normal_table(range(3 * TILE + 5), 2 * TILE + 3, 7, F32)
    assert whole.shape == (3 * TILE + 5, 2 * TILE + 3)
    for rows in (range(1), range(5, 6), range(TILE), range(TILE - 1, TILE + 2), range(10, 2 * TILE + 9)):
        for columns in (1, TILE, TILE + 1):
            assert torch.equal(normal_table(rows, columns, 7, F32), whole[rows.start : rows.stop, :columns])
    assert not torch.equal(normal_table(range(9), 9, 8, F32), whole[:9, :9])
    assert not torch.equal(normal_table(range(9), 9, 7, F32, 1), whole[:9, :9])


def test_the_table_is_standard_normal_and_its_tiles_differ():
    table = normal_table(range(5 * TILE), 5 * TILE, 1, F64)
    assert len(table.unique()) > 0.99 * table.numel()
    # 102,400 draws: the standard error of the mean is 0.003, those of variance and kurtosis are 0.004 and 0.015.
    assert abs(table.mean()) < 0.015
    assert abs(table.var() - 1) < 0.02
    assert abs((table**4).mean() - 3) < 0.08


def test_neighbouring_seeds_are_uncorrelated():
    draws = torch.stack([torch.randn(1000, generator=generator(seed)) for seed in range(20)])
    assert torch.corrcoef(draws).fill_diagonal_(0).abs().max() < 0.17
