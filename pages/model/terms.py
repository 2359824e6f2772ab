"""The definitions of perplexity and of the copy test, which the views of the tab Text share."""

from app.ui.export import formula_expander
from app.words.i18n import _, paragraph
from attention_core.experiments import swap


def show() -> None:
    """Draw the definitions, folded."""
    formula_expander(
        _("Definitions"),
        r"\text{perplexity} = \exp\Big(\tfrac{1}{n-1}\sum_{i>1} -\log p(x_i \mid x_{<i})\Big)",
        paragraph(
            _("A perplexity of 10 means that the model is as uncertain as if 10 tokens were equally likely."),
            _("The model's probability of token $x_i$ is p. The loss of a token is $-\\log p$, in nats."),
            _(
                "Copy test: the model is given {period} random common tokens twice in a row. To copy a token, a query "
                "must attend {back} tokens back, to the token that followed its own first occurrence.",
                period=swap.PERIOD,
                back=swap.COPY_DISTANCE,
            ),
            _(
                "The copying loss is the mean loss of all repeated tokens except the first. A uniform guess among all "
                "49,152 tokens has a loss of 10.8 nats. A confident but wrong prediction has a larger loss."
            ),
        ),
        key="model.method",
    )
