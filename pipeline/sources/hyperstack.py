"""Hyperstack: the GPU cards of the price page (on-demand, reservation, spot), or the API's pricebook; with a
key, also the API's stock.

Prices are per GPU-hour. A card is for GPUs if one of its column headings says so; CPU and AI Studio cards
otherwise look the same. The stock gives the regions in which a GPU is free, and the sizes of its machines;
each on-demand price of a GPU in the stock is listed once per region.
"""

import re
from dataclasses import replace
from typing import Any

from bs4 import Tag

from pipeline.sources import kit

GPU_HEADER = r"^GPUs?(?: model| type| name)?$"
PRICE_HEADER = r"pric(?:e|ing)|per hour|starting from|^spot\b|on[ -]demand"
SPOT_SUFFIX = "-spot"
_LEADING_NUMBER = re.compile(r"\d{1,7}(?=\+?$)")
_SIZE = re.compile(r"(\d{1,3})x")


@kit.joint_reader()
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """One listing per GPU and card, or per GPU row of a pricebook; for on-demand prices, one listing per
    region in which the stock lists the GPU.

    A reservation has a "starting from" price without a term, so it is flagged and not ranked. If the stock
    cannot be read, it becomes a reject, and the prices are listed without regions.
    """
    stock: dict[str, list[dict[str, Any]]] = {}
    for answer in filter(_is_stock, answers):
        try:
            stock = _read_stock(answer, audit)
        except (kit.RowError, kit.SourceChangedError) as error:
            yield kit.Reject(
                kit.RejectReason.UNREADABLE_ANSWER, f"the stock: {error}", answer.text()[:200], answer
            )
    models = audit.config.settings["stock_models"]
    for answer in answers:
        if _is_stock(answer):
            continue
        rows = _read_pricebook(answer, audit) if answer.is_json else _read_page(answer, audit)
        for row in rows:
            if isinstance(row, kit.Listing) and row.price_kind == "on_demand":
                places = stock.get(models.get(row.raw_label, row.raw_label), [{}])
                yield from (replace(row, **place) for place in places)
            else:
                yield row
    if unknown := sorted(stock.keys() - set(models.values())):
        yield kit.ReaderWarning(f"stock_models of the yaml lacks GPUs of the stock: {', '.join(unknown)}")


def _is_stock(answer: kit.Answer) -> bool:
    if not answer.is_json:
        return False
    body = answer.json()
    return isinstance(body, dict) and "stocks" in body


def _read_stock(answer: kit.Answer, audit: kit.FieldAudit) -> dict[str, list[dict[str, Any]]]:
    """Return the stock, keyed by the API's name for the GPU: for each region, whether any GPU is free, and
    the sizes of the free machines. Raises RowError or SourceChangedError."""
    found: dict[str, list[dict[str, Any]]] = {}
    for place in audit.items(answer, "stocks"):
        region = place.text("region")
        for model in place.objects("models"):
            free = _LEADING_NUMBER.match(str(model.get("available")))
            sizes = model.get("configurations")
            counts = sizes.items() if isinstance(sizes, dict) else ()
            sold = (
                _SIZE.fullmatch(size) for size, number in counts if isinstance(number, int) and number > 0
            )
            in_region = {
                "region": region,
                "available": None if free is None else int(free[0]) > 0,
                "gpu_counts": tuple(sorted(int(size[1]) for size in sold if size)) or None,
            }
            found.setdefault(model.text("model"), []).append(in_region)
    return found


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    cards = [card for card in kit.with_class(kit.page(answer), "page-price_card") if not kit.is_hidden(card)]
    titles = [" ".join(kit.texts_of(kit.named(card, "h2", "h3", "h4"))) for card in cards]
    grids = [(title, _grid(card, title, audit.config)) for card, title in zip(cards, titles, strict=True)]
    for _, grid in grids:
        audit.table(grid.headers, is_read=bool(kit.columns(grid.headers, GPU_HEADER)))
    gpu_grids = [(title, grid) for title, grid in grids if kit.columns(grid.headers, GPU_HEADER)]
    if not any(kit.price_kind(title) == "on_demand" for title, _ in gpu_grids):
        raise answer.changed("no card with on-demand GPU prices")
    for title, grid in gpu_grids:
        yield from _read_card(title, grid, answer)


def _grid(card: Tag, title: str, config: kit.SourceConfig) -> kit.Table:
    """Return the card's headings and rows; a GPU card without headings gets those in the yaml."""
    kind = None if re.search(r"\bCPU\b", title) else kit.price_kind(title)
    headers = kit.texts_of(kit.with_class(card, "page-price_card_head_item"))
    rows = [
        kit.with_class(row, "page-price_card_row_item_col")
        for row in kit.with_class(card, "page-price_card_row_item")
    ]
    # The page's last row is sometimes an empty frame.
    return kit.Table(
        headers or config.settings["usual_columns"].get(kind, []), [cells for cells in rows if cells]
    )


def _read_card(title: str, grid: kit.Table, answer: kit.Answer) -> kit.Rows:
    gpu_at = kit.column(grid.headers, GPU_HEADER, answer)
    price_at = kit.column(grid.headers, PRICE_HEADER, answer)
    if not grid.rows:
        raise answer.changed(f"the card {title!r} has no rows")
    kind = kit.price_kind(title)
    yield from grid.other_rows(answer)
    for _, texts in grid.full_rows():
        raw = {"card": title, "cells": texts}
        if kind is None:
            detail = f"the card {title!r} does not say what kind of price it lists"
            yield kit.Reject(kit.RejectReason.UNKNOWN_PRICE_KIND, detail, raw, answer)
            continue
        yield kit.gpu_hour_row(
            texts[gpu_at],
            kind,
            texts[price_at],
            raw,
            answer,
            context=kit.known(vram_gb=kit.optional_number(grid.text(texts, r"^VRAM\b"))),
            # The column counts vCPUs, as the flavors do: 28 for n3-H100x1, 192 for n3-H100-SXM5x8.
            vcpus=kit.optional_number(grid.text(texts, r"\b[pv]?CPUs? per GPU$")),
            ram_gib=kit.optional_number(grid.text(texts, r"\bRAM \(GB\) per GPU$")),
            flag_reason=kit.FlagReason.STARTING_PRICE_OF_AN_UNSTATED_TERM if kind == "reserved" else None,
        )


def _read_pricebook(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    is_gpu = re.compile(str(audit.config.settings["pricebook_gpu"])).search
    items = audit.items(answer, "pricebook", "data", "prices", "resources")
    if not all(isinstance(item.peek("name"), str) for item in items):
        raise answer.changed("a row of the pricebook has no name")
    gpus = [item for item in items if is_gpu(item.peek("name"))]
    if not gpus:
        raise answer.changed("the pricebook names no GPU")
    yield from kit.read_rows(gpus, _read_listed, "name")


def _read_listed(item: kit.JsonObject) -> kit.Listings:
    name = item.text("name")
    yield item.listing(
        name.removesuffix(SPOT_SUFFIX),
        1,
        kit.price_of(_list_price(item)),
        price_kind="spot" if name.endswith(SPOT_SUFFIX) else "on_demand",
        native_unit="gpu_hour",
    )


def _list_price(item: kit.JsonObject) -> Any:
    """Return the price before the requesting account's discount, which ``value`` already includes."""
    if "value" not in item:
        raise item.answer.changed(f"{item.peek('name')!r} has no value")
    original = item.get("original_value", "value")
    return original if item.get("discount_applied") else item.get("value")
