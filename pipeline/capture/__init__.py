"""Asking providers politely and archiving their answers: client, archive, visits and replay."""
