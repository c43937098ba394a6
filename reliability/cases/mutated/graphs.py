"""Mutates protocol buffers: the bytes of a message, and its fields."""

import random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from onnx import TensorProto

from reliability.cases.mutated.trees import FRACTIONS, mutated_text

Message = Any

INTEGERS = [0, -1, 1, 2, 7, 127, 255, 2**16, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
TEXTS = [
    "",
    "x",
    "input_ids",
    "Loop",
    "Gather",
    "com.microsoft",
    "location",
    "../x",
    "/etc/hostname",
    "a\n|b",
    "é" * 9999,
]
LOCATIONS = ["", ".", "model.onnx", "tokenizer.json", "bertscore.json", "missing", "../x", "/etc/hostname", "a\0b"]
LOCATIONS += ["*/_ORT_MEM_ADDR_/*", "/dev/zero"]
OFFSETS = ["", "0", "1", "-1", "4096", "99999999", str(2**31), str(2**63), str(2**64), "x", "1e3", " 1", "0x10"]
TAGS = [b"\x00", b"\x07", b"\x3b", b"\x3c", b"\xba\x80\x80\x80\x10", b"\xba\x80\x00", b"\xff" * 10 + b"\x01"]
"""Beginnings of fields that no writer would write: number 0, groups, more bytes than needed, bits beyond the 32nd."""


def mutated_bytes(content: bytes, draw: random.Random) -> bytes:
    """Change bytes, or put the beginning of a strange field somewhere."""
    if draw.random() < 0.7:
        return mutated_text(content, draw)
    at = draw.choice([0, 2, 12, len(content), draw.randrange(len(content))])
    return content[:at] + draw.choice(TAGS) + draw.randbytes(draw.choice([0, 1, 5])) + content[at:]


def mutated_graph(content: bytes, draw: random.Random) -> bytes:
    """Change one to three fields of an ONNX graph."""
    model = onnx.load_from_string(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        draw.choice([mutate_message, _mutate_graph, _mutate_graph, _mutate_tensor, _name_external_data])(model, draw)
    return bytes(model.SerializeToString())


def _mutate_graph(model: Message, draw: random.Random) -> None:
    mutate_message(model.graph, draw)


def _mutate_tensor(model: Message, draw: random.Random) -> None:
    """Change the shape or the type of an initializer."""
    if not model.graph.initializer:
        return
    tensor = draw.choice(model.graph.initializer)
    if draw.random() < 0.5:
        tensor.data_type = draw.choice([0, 1, 6, 7, 8, 10, 16, 17, 22, 99, TensorProto.FLOAT])
    else:
        mutate_field(tensor, tensor.DESCRIPTOR.fields_by_name["dims"], draw)


def _name_external_data(model: Message, draw: random.Random) -> None:
    """Let an initializer take its values from a file."""
    if not model.graph.initializer:
        return
    tensor = draw.choice(model.graph.initializer)
    tensor.data_location = TensorProto.EXTERNAL
    if draw.random() < 0.8:
        tensor.ClearField("raw_data")
    for key, values in (("location", LOCATIONS), ("offset", OFFSETS), ("length", OFFSETS)):
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            tensor.external_data.add(key=key, value=draw.choice(values))


def mutate_message(message: Message, draw: random.Random) -> None:
    """Change one field of a message, or of one that it holds; each level is left as likely as any other."""
    while True:
        present = [field for field, _ in message.ListFields()]
        if not present or draw.random() < 0.1:
            mutate_field(message, draw.choice(message.DESCRIPTOR.fields), draw)
            return
        field = draw.choice(present)
        if field.type != FieldDescriptor.TYPE_MESSAGE or draw.random() < 0.15:
            mutate_field(message, field, draw)
            return
        value = getattr(message, field.name)
        message = draw.choice(value) if field.is_repeated else value


def mutate_field(message: Message, field: Any, draw: random.Random) -> None:
    """Clear a field, repeat it, leave some of it out or give it another value."""
    if field.is_repeated:
        _mutate_repeated(message, field, draw)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if message.HasField(field.name):
            message.ClearField(field.name)
        else:
            getattr(message, field.name).SetInParent()
    elif draw.random() < 0.15:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _value(field, getattr(message, field.name), draw))


def _mutate_repeated(message: Message, field: Any, draw: random.Random) -> None:
    values = list(getattr(message, field.name))
    place = draw.randrange(len(values)) if values else 0
    kind = draw.randrange(6)
    if kind == 0 or not values:
        values = []
    elif kind == 1:
        del values[place]
    elif kind == 2:
        values += [values[place]] * draw.choice([1, 1, 100])
    elif kind == 3:
        draw.shuffle(values)
    elif field.type != FieldDescriptor.TYPE_MESSAGE:
        values[place] = _value(field, values[place], draw)
    message_values = (
        [type(value).FromString(value.SerializeToString()) for value in values] if _is_message(field) else values
    )
    message.ClearField(field.name)
    getattr(message, field.name).extend(message_values)
    if not values:
        for _ in range(draw.choice([0, 0, 1, 3])):
            if _is_message(field):
                getattr(message, field.name).add()
            else:
                getattr(message, field.name).append(_value(field, None, draw))


def _is_message(field: Any) -> bool:
    return bool(field.type == FieldDescriptor.TYPE_MESSAGE)


def _value(field: Any, before: Any, draw: random.Random) -> Any:
    """Return another value of a field's type."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return draw.choice([number.number for number in field.enum_type.values])
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return draw.choice([b"", b"x" * 100_000, mutated_text(before or b"\0", draw), (before or b"")[:-1]])
        return draw.choice([*TEXTS, (before or "") + "x"])
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return draw.choice([*FRACTIONS[:-2], float("nan"), float("inf")])
    small = field.cpp_type == FieldDescriptor.CPPTYPE_INT32
    number = draw.choice([*INTEGERS, (before or 0) + 1, (before or 0) * 2])
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return abs(number)
    return max(min(number, 2**31 - 1), -(2**31)) if small else max(min(number, 2**63 - 1), -(2**63))
