"""Lists of the API, page by page."""

from __future__ import annotations

from typing import Any, Generic, Iterator, List, Mapping, Optional, TypeVar

from ._api import Api, Options

Item = TypeVar("Item")


class Page(Generic[Item]):
    """Rows of one request. ``next_cursor`` continues the list; None on the last page."""

    def __init__(self, data: List[Item], has_more: bool, next_cursor: Optional[str]) -> None:
        self.data = data
        self.has_more = has_more
        self.next_cursor = next_cursor


class Rows(Generic[Item]):
    """Every row: iterating fetches the next page once the rows of one are used up."""

    def __init__(
        self,
        api: Api,
        path: str,
        query: Optional[Mapping[str, Any]],
        options: Optional[Options],
        cursor: str = "created_before",
    ) -> None:
        self._api = api
        self._path = path
        self._query = query or {}
        self._options = options
        self._cursor = cursor

    def first_page(self) -> Page[Item]:
        return self._read({})

    def pages(self) -> Iterator[Page[Item]]:
        page = self.first_page()
        yield page
        while page.has_more and page.next_cursor is not None:
            page = self._read({self._cursor: page.next_cursor})
            yield page

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page.data

    def _read(self, more: Mapping[str, Any]) -> Page[Item]:
        page = self._api.get(self._path, {**self._query, **more}, self._options)
        return Page(page["data"], page["has_more"], page["next_cursor"])
