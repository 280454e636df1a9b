"""Voltage Park: bare-metal nodes, priced by network, and ready-made virtual machines."""

from pipeline.sources import kit

_PRICE_FIELD = "gpu_price_"


@kit.reader("neither a location nor a preset with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Locations and presets, distinguished by their fields. Presets without GPUs are skipped."""
    page = audit.envelope(answer, "results")
    items = page.items("results")
    yield from kit.read_rows(items, _read_item, "id")
    if page.get("has_next"):
        detail = "the list continues on pages whose addresses are unknown"
        yield kit.Reject(kit.RejectReason.UNREAD_PAGE, detail, page.get("total_result_count"), answer)


def _read_item(item: kit.JsonObject) -> kit.Rows:
    if "specs_per_node" in item.raw:
        return _read_location(item)
    if "compute_rate_hourly" in item.raw:
        return _read_preset(item)
    detail = f"neither a location nor a preset: {sorted(item.raw)[:12]}"
    raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, detail)


def _read_location(item: kit.JsonObject) -> kit.Rows:
    """Yield one listing per network: prices are per GPU, and a node is rented as a whole."""
    node = item.object("specs_per_node")
    model, gpu_count = node.text("gpu_model"), node.gpu_count("gpu_count")
    networks = [name.removeprefix(_PRICE_FIELD) for name in item.raw if name.startswith(_PRICE_FIELD)]
    if not networks:
        raise item.answer.changed(f"a location has no {_PRICE_FIELD}* field")
    for network in networks:
        try:
            price = item.price(_PRICE_FIELD + network)
            if network not in item.config.settings["networks"]:
                raise kit.RowError(
                    kit.RejectReason.UNKNOWN_TERMS, f"a price for the unknown network {network!r}"
                )
        except kit.RowError as error:
            yield item.reject(error, item.name("id"))
            continue
        yield item.listing(
            model,
            gpu_count,
            price,
            native_unit="gpu_hour",
            min_gpu_count=gpu_count,
            available=kit.is_available(item.get(f"gpu_count_{network}")),
            tier=f"bare_metal_{network}",
            node_network_gbps=item.config.settings["node_network_gbps"].get(network),
            ram_gib=node.optional_number("ram_gb"),
            local_disk_gb=node.optional_number("storage_gb"),
        )


def _read_preset(item: kit.JsonObject) -> kit.Listings:
    """Yield a whole virtual machine: its compute and the disk that comes with it."""
    resources = item.object("resources")
    gpus = resources.objects_by_name("gpus")
    if not gpus:
        return
    if len(gpus) != 1:
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"{len(gpus)} GPU models in one machine")
    ((model, gpu),) = gpus.items()
    price, has_disk_price = item.price("compute_rate_hourly"), item.get("storage_rate_hourly") is not None
    places = item.get("location_ids_with_availability")
    yield item.listing(
        model,
        gpu.gpu_count("count"),
        price + item.price("storage_rate_hourly") if has_disk_price else price,
        available=len(places) > 0 if isinstance(places, list) else None,
        tier="vm",
        vcpus=resources.optional_number("vcpu_count"),
        ram_gib=resources.optional_number("ram_gb"),
        local_disk_gb=resources.optional_number("storage_gb"),
        flag_reason=None if has_disk_price else kit.FlagReason.DISK_NOT_PRICED,
    )
