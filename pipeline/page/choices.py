"""Choices for a reader of the report: price kinds, places and tiers, each also a command-line option."""

from dataclasses import dataclass

ANY_KIND = "any"


@dataclass(frozen=True, slots=True)
class Filter:
    """One choice: its name in the page's address, its label, and the job setting behind it, which is applied
    before anything is ranked; a ``value`` of None sets nothing."""

    name: str
    label: str
    setting: str
    value: str | None = None

    @property
    def option(self) -> str:
        """The choice as a command-line option."""
        return "" if self.value is None else f"--{self.setting} {self.value}"


KINDS = (
    Filter("on_demand", "On-demand", "kind", "on_demand"),
    Filter("spot", "Spot", "kind", "spot"),
    Filter("flex_start", "Flex-start", "kind", "flex_start"),
    Filter("serverless", "Serverless", "kind", "serverless"),
    Filter("reserved", "Reserved", "kind", "reserved"),
    Filter(ANY_KIND, "Any but reserved", "kind", "any"),
)
PLACES = (
    Filter("anywhere", "Anywhere", "country"),
    Filter("eu", "European Union", "country", "eu"),
    Filter("europe", "Europe", "continent", "europe"),
    Filter("us", "United States", "country", "us"),
)
TIERS = (
    Filter("all", "All machines", "tier"),
    Filter("dedicated", "The provider's own only", "tier", "dedicated"),
)
