"""One comment of a review on a pull request of GitHub or a merge request of GitLab, kept up to date.

    destinations   options and the CI's environment → which pull request, of which forge, with which token
    messages       what is posted: a review's Markdown with its marker, within the forge's limit
    masking        no secret of this process in anything that is posted or printed
    waiting        an answer → how long to wait before asking again
    refusals       an answer that says no → a problem with what to do
    session        requests within one time bound, to one host
    github gitlab  the few calls of each API
    comments       find, create, update: exactly one comment

The only package that talks to a network on its own; nothing else of ours runs in its process.
"""

from dra_infra.forge.comments import Outcome, keep_one, look
from dra_infra.forge.destinations import Destination, destination_of
from dra_infra.forge.messages import Mask, Message, read_message
from dra_infra.forge.session import Session

__all__ = [
    "Destination",
    "Mask",
    "Message",
    "Outcome",
    "Session",
    "destination_of",
    "keep_one",
    "look",
    "read_message",
]
