"""Akash: for each card, the lowest of the providers' bids, a floor below which nothing can be rented."""

from pipeline.sources import kit


@kit.reader("no GPU model")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One flagged listing per card, memory size and interface."""
    return kit.read_rows(audit.items(answer, "models"), _read_model, "model", "ram", "interface")


def _read_model(model: kit.JsonObject) -> kit.Listings:
    if model.get("price") is None:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "no bid for it in the last month")
    price = model.object("price")
    yield model.listing(
        " ".join(filter(None, (model.optional_text("vendor"), model.text("model")))),
        1,
        price.price("min"),
        native_currency=price.text("currency"),
        native_unit="gpu_hour",
        context=kit.known(
            form_factor=model.optional_text("interface"),
            vram_gb=kit.gigabytes(f"{model.optional_text('ram')}B"),  # 80Gi
        ),
        available=kit.is_available(model.object("availability").get("available")),
        flag_reason=kit.FlagReason.STARTING_PRICE,
    )
