"""The OpenAPI document is valid, describes everything, and what it says is what the server does."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from bertscore_onnx.server.app import create_app
from bertscore_onnx.server.endpoints import openapi_document
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.middleware import OPEN_PATHS, ApiKeys
from tests.support.http_server import serving

JSON, NDJSON, OCTETS = "application/json", "application/x-ndjson", "application/octet-stream"


@pytest.fixture
def document(client):
    """What a server without keys says."""
    return client.get("/openapi.json").json()


@pytest.mark.parametrize("needs_key", [True, False])
def test_the_document_is_valid(needs_key):
    validate(openapi_document(needs_key=needs_key))


def test_it_has_every_route_and_no_other(models, document):
    app = create_app(models, Limits())
    routes = {(route.path, method.lower()) for route in app.routes for method in route.methods - {"HEAD"}}
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert described == routes


@pytest.mark.parametrize("needs_key", [True, False])
def test_every_reference_leads_somewhere_and_all_is_referred_to(needs_key):
    document = openapi_document(needs_key=needs_key)
    for kind in ("schemas", "responses"):
        named = {*re.findall(rf'"\$ref": "#/components/{kind}/(\w+)"', json.dumps(document))}
        assert named == document["components"][kind].keys()


def test_every_field_and_every_parameter_is_described(document):
    schemas = document["components"]["schemas"]
    fields = {
        f"{name}.{field}": description
        for name, schema in schemas.items()
        for field, description in schema["properties"].items()
    }
    assert len(fields) > 40
    assert [name for name, schema in (fields | schemas).items() if not schema.get("description")] == []
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    parameters = [parameter for operation in operations for parameter in operation.get("parameters", [])]
    assert {parameter["name"] for parameter in parameters} == {"model", "rescale", "idf"}
    assert all(parameter["description"] for parameter in parameters)


def test_without_keys_it_asks_for_none(document):
    assert "security" not in json.dumps(document)
    assert "Bearer" not in json.dumps(document)
    answers = [operation["responses"] for methods in document["paths"].values() for operation in methods.values()]
    assert not any("401" in one for one in answers)


def test_with_keys_it_says_which_endpoints_are_open(models):
    with serving(models, keys=ApiKeys(["k" * 32])) as client:
        document = client.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert document["security"] == [{"key": []}]
    operations = {path: [*methods.values()] for path, methods in document["paths"].items()}
    assert {path for path, [one] in operations.items() if one.get("security") == []} == {*OPEN_PATHS}
    assert {path for path, [one] in operations.items() if "401" not in one["responses"]} == {*OPEN_PATHS}


def check(document, schema, value):
    Draft202012Validator({**schema, "components": document["components"]}).validate(value)


@pytest.mark.parametrize("path", ["/v1/score", "/v1/match"])
def test_the_examples_are_answered_as_described(client, document, path):
    operation = document["paths"][path]["post"]
    body = operation["requestBody"]["content"][JSON]
    check(document, body["schema"], body["example"])
    answer = client.post(path, json=body["example"])
    assert answer.status_code == 200
    check(document, operation["responses"]["200"]["content"][JSON]["schema"], answer.json())


@pytest.mark.parametrize("path", ["/v1/models", "/health/live", "/health/ready"])
def test_what_is_asked_for_is_answered_as_described(client, document, path):
    schema = document["paths"][path]["get"]["responses"]["200"]["content"][JSON]["schema"]
    check(document, schema, client.get(path).json())


def test_the_example_of_a_stream_is_answered_as_described(client, document):
    operation = document["paths"]["/v1/score/stream"]["post"]
    body = operation["requestBody"]["content"][NDJSON]
    for line in body["example"].splitlines():
        check(document, body["x-item-schema"], json.loads(line))
    sent = body["example"] + '{"reference": "a"}\n'
    answer = client.post("/v1/score/stream", content=sent, headers={"Content-Type": NDJSON})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, NDJSON)
    described = operation["responses"]["200"]["content"][NDJSON]
    examples = [json.loads(line) for line in described["example"].splitlines()]
    lines = [json.loads(line) for line in answer.text.splitlines()]
    for line in lines + examples:
        check(document, described["x-item-schema"], line)
    first, _, wrong, end = lines
    assert [line.keys() for line in (first, wrong, end)] == [line.keys() for line in examples]
    assert {**wrong["error"], "line": 2} == examples[1]["error"]


def test_a_client_that_knows_no_ndjson_sends_and_gets_bytes(client):
    line = b'{"candidate": "a cat", "reference": "the cat"}\n'
    answer = client.post("/v1/score/stream?model=tiny-bert", content=line, headers={"Content-Type": OCTETS})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, OCTETS)
    same = client.post("/v1/score", content=line, headers={"Content-Type": NDJSON})
    assert answer.content == same.content


@pytest.mark.parametrize(("path", "kind"), [("/v1/score/stream", JSON), ("/v1/score", OCTETS)])
def test_another_media_type_is_refused(client, path, kind):
    answer = client.post(path, content=b"{}", headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
