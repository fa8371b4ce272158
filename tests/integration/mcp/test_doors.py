"""Servers reached by HTTP that lead elsewhere, take no key, or cannot be trusted."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from loopctl.calls import Outcome, ToolResult
from loopctl.errors import EnvironmentFaultError

from .site import Site, opened

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

KEYS = {"Authorization": "SITE_TOKEN", "X-Team": "SITE_TEAM"}
LIVE = [301, 302, 303, 307, 308]


def keyed(bench: "Bench", site: Site) -> dict[str, Any]:
    """Return the settings of a server that is handed keys."""
    bench.env |= {"SITE_TOKEN": "s3cret-token", "SITE_TEAM": "team-one"}
    return {"url": site.url, "headers_env": KEYS}


def fault(bench: "Bench", **server: Any) -> str:
    with pytest.raises(EnvironmentFaultError) as caught:
        bench.open(web=server).tools(bench.box())
    return str(caught.value)


@pytest.mark.parametrize("status", LIVE)
def test_a_server_that_leads_elsewhere_is_a_fault_that_names_the_setting(
    bench: "Bench", site: Site, status: int
) -> None:
    with opened() as other:
        site.moved["initialize"] = (status, f"http://me:hush@127.0.0.1:{other.port}/new?key=hush")
        said = fault(bench, **keyed(bench, site))
    assert f"the server answered with {status} " in said
    assert said.endswith(
        f", which leads to http://127.0.0.1:{other.port}/new and is not followed; if the server is "
        "there, correct url in [mcp.web]."
    )
    assert (said.count("[mcp."), "hush" in said) == (1, False)
    assert (site.asked, other.asked, other.paths) == (["initialize"], [], set())


@pytest.mark.parametrize("what", ["notifications/initialized", "tools/list", "GET", "DELETE"])
@pytest.mark.parametrize("status", [303, 307])
def test_nothing_is_sent_where_a_redirect_leads_not_even_on_the_same_host(
    bench: "Bench", site: Site, what: str, status: int
) -> None:
    site.moved[what] = (status, "/other")
    servers = bench.open(web=keyed(bench, site))
    if what == "tools/list":
        with pytest.raises(
            EnvironmentFaultError, match=r"/other and is not followed.*\[mcp\.web\]"
        ):
            servers.tools(bench.box())
    else:
        assert list(servers.tools(bench.box())) == ["mcp__web__read", "mcp__web__write"]
    bench.closing.close()
    assert site.paths == {"/mcp"}


@pytest.mark.parametrize("status", LIVE)
def test_a_call_that_is_led_elsewhere_is_made_nowhere(
    bench: "Bench", site: Site, status: int
) -> None:
    tools = bench.open(web=keyed(bench, site)).tools(bench.box())
    site.moved["tools/call"] = (status, "/other")
    came = tools["mcp__web__write"].tool.run({}, "k")
    if status in {302, 303}:
        # Some answer so when it is done.
        assert came is Outcome.UNKNOWN
    else:
        assert isinstance(came, ToolResult)
        assert "was not carried out" in came.content
        assert "is not followed; if the server is there, correct url in [mcp.web]" in came.content
    assert (site.paths, site.done, site.asked.count("tools/call")) == ({"/mcp"}, 0, 1)


JSON = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "go away"}}'


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", [b"", JSON], ids=["plain", "in JSON"])
def test_a_key_that_is_refused_is_named_with_its_setting(
    bench: "Bench", site: Site, status: int, body: bytes
) -> None:
    site.login, site.no_entry = "Bearer other", (body, "application/json", status)
    said = fault(bench, **keyed(bench, site))
    assert said.startswith(f"the tool server 'web' (http://127.0.0.1:{site.port}/mcp) cannot be ")
    assert f"the server answered with {status} " in said
    assert said.endswith("; set a valid key in SITE_TOKEN or SITE_TEAM (headers_env of [mcp.web]).")
    assert site.asked == ["initialize"]


def test_a_key_that_is_taken_away_meanwhile_is_named_in_the_result_of_the_call(
    bench: "Bench", site: Site
) -> None:
    tools = bench.open(web=keyed(bench, site)).tools(bench.box())
    site.login = "Bearer other"
    came = tools["mcp__web__write"].tool.run({}, "k")
    assert isinstance(came, ToolResult)
    assert (
        "401 Unauthorized; set a valid key in SITE_TOKEN or SITE_TEAM (headers_env of"
        in came.content
    )
    assert (site.done, site.asked.count("tools/call")) == (0, 1)


def certificate(folder: Path) -> ssl.SSLContext:
    """Return what serves this machine with a certificate that nobody but itself has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "site")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "site.pem"
    file.write_bytes(key.private_bytes(pem, *plain) + signed.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_that_is_not_trusted_is_told_and_no_key_is_sent(
    bench: "Bench", tmp_path: Path
) -> None:
    with opened(certificate(tmp_path)) as site:
        url = site.url.replace("http://", "https://")
        said = fault(bench, **{**keyed(bench, site), "url": url})
    assert "no encrypted connection can be made: certificate verify failed: " in said
    assert said.endswith(
        "; correct url in [mcp.web], or have this machine trust the server's certificate."
    )
    assert (site.asked, said.count("[mcp.")) == ([], 1)


def test_a_server_that_does_not_speak_tls_is_told_with_its_setting(
    bench: "Bench", site: Site
) -> None:
    url = site.url.replace("http://", "https://")
    said = fault(bench, **{**keyed(bench, site), "url": url})
    assert "no encrypted connection can be made: wrong version number; correct url in [mcp." in said
    assert site.asked == []
