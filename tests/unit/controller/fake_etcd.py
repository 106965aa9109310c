"""An etcd in memory that speaks its HTTP gateway's JSON, and members of it that fail in the ways real ones do."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cometmq.controller.etcd.endpoint import EndpointFailed, EtcdRefused

Words = Mapping[str, Any]


@dataclass
class Stored:
    value: bytes
    mod_revision: int
    lease: int = 0


@dataclass
class FakeEtcd:
    """``now``: seconds, for leases."""

    now: Callable[[], float]
    cluster_id: int = 7
    revision: int = 1
    keys: dict[bytes, Stored] = field(default_factory=dict)
    leases: dict[int, tuple[int, float]] = field(default_factory=dict)
    is_full: bool = False
    leases_given: int = 0

    def put(self, key: str, value: bytes, lease: int = 0) -> None:
        """As somebody else would."""
        self.revision += 1
        self.keys[key.encode()] = Stored(value, self.revision, lease)

    def carry_out(self, path: str, words: Words) -> dict[str, Any]:
        for lease, (_, ends_at) in list(self.leases.items()):
            if self.now() >= ends_at:
                self.revoke(lease)
        match path:
            case "kv/txn":
                return self._txn(words)
            case "lease/grant":
                self._refuse_if_full()
                self.leases_given += 1
                ttl = words["TTL"]
                self.leases[self.leases_given] = ttl, self.now() + ttl
                return {"header": self._header(), "ID": str(self.leases_given), "TTL": str(ttl)}
            case "lease/keepalive":
                lease = words["ID"]
                if lease not in self.leases:
                    return {"result": {"header": self._header(), "ID": str(lease)}}
                ttl, _ = self.leases[lease]
                self.leases[lease] = ttl, self.now() + ttl
                return {"result": {"header": self._header(), "ID": str(lease), "TTL": str(ttl)}}
            case "lease/revoke":
                self.revoke(words["ID"])
                return {"header": self._header()}
        raise AssertionError(f"nobody asks etcd for {path}")

    def revoke(self, lease: int) -> None:
        del self.leases[lease]
        gone = [key for key, stored in self.keys.items() if stored.lease == lease]
        for key in gone:
            del self.keys[key]
        self.revision += bool(gone)

    def _txn(self, words: Words) -> dict[str, Any]:
        branches = words["success"] + words["failure"]
        if any("request_put" in one for one in branches):
            self._refuse_if_full()
        succeeded = all(map(self._holds, words["compare"]))
        chosen = words["success" if succeeded else "failure"]
        self.revision += any("request_put" in one for one in chosen)
        responses = [self._one(one) for one in chosen]
        # Zeros and what is false are left out, as by etcd.
        told = {"succeeded": True} if succeeded else {}
        return {"header": self._header(), **told, "responses": responses}

    def _holds(self, condition: Words) -> bool:
        assert (condition["target"], condition["result"]) == ("MOD", "EQUAL")
        stored = self.keys.get(b64decode(condition["key"]))
        return bool((0 if stored is None else stored.mod_revision) == condition["mod_revision"])

    def _one(self, words: Words) -> dict[str, Any]:
        if "request_put" in words:
            wanted = words["request_put"]
            key, lease = b64decode(wanted["key"]), wanted["lease"]
            assert not lease or lease in self.leases
            self.keys[key] = Stored(b64decode(wanted["value"]), self.revision, lease)
            return {"response_put": {"header": {"revision": str(self.revision)}}}
        wanted = words["request_range"]
        start = b64decode(wanted["key"])
        end = b64decode(wanted["range_end"]) if "range_end" in wanted else start + b"\0"
        found = [
            {
                "key": b64encode(key).decode(),
                "value": b64encode(stored.value).decode(),
                "mod_revision": str(stored.mod_revision),
                "lease": str(stored.lease),
            }
            for key, stored in sorted(self.keys.items())
            if start <= key < end and stored.mod_revision >= wanted.get("min_mod_revision", 0)
        ]
        return {"response_range": {"kvs": found} if found else {"count": "0"}}

    def _header(self) -> dict[str, str]:
        return {"cluster_id": str(self.cluster_id), "revision": str(self.revision)}

    def _refuse_if_full(self) -> None:
        if self.is_full:
            raise EtcdRefused("etcd refuses: etcdserver: mvcc: database space exceeded")


@dataclass
class FakeEndpoint:
    """A member. ``is_down``: no answer; ``loses_reply``: carried out, but the answer is lost; ``says``: nonsense."""

    etcd: FakeEtcd
    name: str = "http://e0:2379"
    is_down: bool = False
    loses_reply: bool = False
    says: object = None
    calls: int = 0

    def close(self) -> None: ...

    def post(self, path: str, words: Words) -> Any:
        self.calls += 1
        if self.is_down:
            raise EndpointFailed(f"{self.name}: connection refused")
        if self.says is not None:
            return self.says
        reply = self.etcd.carry_out(path, words)
        if self.loses_reply:
            raise EndpointFailed(f"{self.name} does not answer in time")
        return reply
