"""Training of tiny transformers, one per attention variant, on small tasks with known answers.

Example:
    >>> from attention_core.learning.model import ModelSpec
    >>> from attention_core.learning.train import TrainSpec, model_of, train
    >>> spec = TrainSpec(model=ModelSpec(task="recall", word="linear"), length=32, items=4, steps=4)
    >>> rows = [(row.step, checkpoint) for row, checkpoint in train(spec, every=2)]
    >>> [step for step, _ in rows]
    [2, 4]
    >>> sum(each.numel() for each in model_of(spec, rows[-1][1].weights).parameters())
    42302
"""
