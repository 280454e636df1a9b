"""Asking providers politely and keeping what they answered: client, archive, replay."""
