# SPDX-License-Identifier: Apache-2.0
"""Write TFRecord files of tf.train.Example, by the published layout: what TensorFlow would write, without it."""
import struct

import penstock._c
from data_fixture import optional

INT64, FLOAT, BYTES = 3, 2, 1  # numbers of the lists in tf.train.Feature


def crc32c(data):
    return penstock._c.lib.pstk_crc32c(0, data, len(data))


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def frame(data):
    """Return a record of these bytes."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values, packed=True):
    """Return a tf.train.Feature of integers, floats, or bytes; None: without a list."""
    if values is None:
        return b""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if all(isinstance(value, (bytes, str)) for value in values) and values:
        items = [value.encode() if isinstance(value, str) else value for value in values]
        return message(BYTES, b"".join(message(1, item) for item in items))
    if any(isinstance(value, float) for value in values):
        items = [struct.pack("<f", value) for value in values]
        return message(FLOAT, message(1, b"".join(items)) if packed else b"".join(b"\x0d" + i for i in items))
    items = [varint(int(value)) for value in values]
    if packed:
        return message(INT64, message(1, b"".join(items)) if items else b"")
    return message(INT64, b"".join(b"\x08" + item for item in items))


def example(features, packed=True):
    """Return a tf.train.Example; a value that is bytes under the key of a Raw is a Feature already."""
    entries = b"".join(
        message(1, message(1, key.encode()) + message(
            2, value.data if isinstance(value, Raw) else feature(value, packed)))
        for key, value in features.items())
    return message(1, entries)


class Raw:
    """The bytes of a tf.train.Feature."""

    def __init__(self, data):
        self.data = data


def write(path, records):
    """Write a file; the byte where each record begins, and where the last one ends."""
    at = [0]
    with open(path, "wb") as file:
        for data in records:
            at.append(at[-1] + file.write(frame(data)))
    return at


# tf.train.Example, as tensorflow/core/example declares it: (message, [(field, number, label, type, message)]).
TYPES = {"bytes": 12, "float": 2, "int64": 3, "string": 9, "message": 11}
MESSAGES = [("BytesList", [("value", 1, 3, "bytes", None)]),
            ("FloatList", [("value", 1, 3, "float", None)]),
            ("Int64List", [("value", 1, 3, "int64", None)]),
            ("Feature", [("bytes_list", 1, 1, "message", "BytesList"), ("float_list", 2, 1, "message", "FloatList"),
                         ("int64_list", 3, 1, "message", "Int64List")]),
            ("Example", [("features", 1, 1, "message", "Features")])]


def example_class():
    """Return the class of tf.train.Example, made of a descriptor as protoc would make one."""
    descriptor_pb2 = optional("google.protobuf.descriptor_pb2")
    pool, factory = optional("google.protobuf.descriptor_pool"), optional("google.protobuf.message_factory")
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")

    def add(message, name, number, label, kind, of):
        field = message.field.add(name=name, number=number, label=label, type=TYPES[kind])
        if of:
            field.type_name = of if of.startswith(".") else f".tensorflow.{of}"
        return field
    for name, fields in MESSAGES:
        message = file.message_type.add(name=name)
        for one in fields:
            field = add(message, *one)
            if name == "Feature":
                field.oneof_index = 0
        if name == "Feature":
            message.oneof_decl.add(name="kind")
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, 1, "string", None)
    add(entry, "value", 2, 1, "message", "Feature")
    add(features, "feature", 1, 3, "message", ".tensorflow.Features.FeatureEntry")
    own = pool.DescriptorPool()
    own.Add(file)
    return factory.GetMessageClass(own.FindMessageTypeByName("tensorflow.Example"))
