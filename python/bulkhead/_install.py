"""Tells the native module which classes and functions of the package it uses."""

from __future__ import annotations

import threading

from . import _native, buffer, errors, kernel, values
from .buffer import Buffer
from .event import Event
from .kernel import Kernel
from .module import Module
from .stream import Stream

_native.install(
    Stream=Stream,
    Buffer=Buffer,
    Kernel=Kernel,
    Module=Module,
    Event=Event,
    make_error=errors.make_error,
    make_poison=errors.make_poison,
    make_view_error=errors.make_view_error,
    make_type_error=errors.make_type_error,
    explain_name=kernel.explain_name,
    to_seconds=values.to_seconds,
    take_array=buffer.take_array,
    main_thread=threading.main_thread().native_id or 0,
)
