"""The OpenAPI document is valid and complete, and the server answers as it describes."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from bertscore_onnx_service.http.app import OPEN_PATHS, ApiKeys, create_app
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.pages import openapi_document
from tests.support.http_server import serving

JSON = "application/json"


@pytest.fixture
def document(client):
    return client.get("/openapi.json").json()


def test_it_has_every_route_and_no_other(models, document):
    app = create_app(models, Limits())
    routes = {
        (route.path, method.lower()) for route in app.routes for method in route.methods - {"HEAD"}
    }
    described = {
        (path, method) for path, methods in document["paths"].items() for method in methods
    }
    assert described == routes


@pytest.mark.parametrize("needs_key", [True, False])
def test_it_is_valid_and_every_component_is_referred_to(needs_key):
    document = openapi_document(needs_key=needs_key)
    validate(document)
    for kind in ("schemas", "responses"):
        named = {*re.findall(rf'"\$ref": "#/components/{kind}/(\w+)"', json.dumps(document))}
        assert named == document["components"][kind].keys()


def test_every_field_is_described(document):
    schemas = document["components"]["schemas"]
    fields = {
        f"{name}.{field}": description
        for name, schema in schemas.items()
        for field, description in schema["properties"].items()
    }
    assert len(fields) > 40
    assert [
        name for name, schema in (fields | schemas).items() if not schema.get("description")
    ] == []


def test_it_names_the_endpoints_that_need_no_key(models, document):
    assert not re.search('security|Bearer|"401"', json.dumps(document))
    with serving(models, keys=ApiKeys(["k" * 32])) as client:
        document = client.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert document["security"] == [{"key": []}]
    operations = {path: [*methods.values()] for path, methods in document["paths"].items()}
    assert {path for path, [one] in operations.items() if one.get("security") == []} == {
        *OPEN_PATHS
    }
    assert {path for path, [one] in operations.items() if "401" not in one["responses"]} == {
        *OPEN_PATHS
    }


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
def test_get_requests_are_answered_as_described(client, document, path):
    schema = document["paths"][path]["get"]["responses"]["200"]["content"][JSON]["schema"]
    check(document, schema, client.get(path).json())
