# SPDX-License-Identifier: Apache-2.0
"""What ofqosd's YAML file says (docs/how-to/ofqosd.md).  What is wrong is told with its line."""
from __future__ import annotations

import ipaddress
import os
import re
import ssl
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import commandline, secure
from ..address import parse_address, parse_place
from ..history.store import LEAST_MB
from ..yamlfile import MOST_BYTES, Part, Wrong, parse
from ..reserve import settings as reserve
from ..shaper.carry import rate_of
from ..shaper import leases, radius
from ..shaper.model import Pair
from ..shaper.ownlist import is_own, rates_of
from ..shaper.plan import LEAVES
from ..shaper.service import Settings as ShaperSettings
from ..shaper.sessions import Plan
from ..shaper.sources import LeaseFile
from ..web.network import Link, parse_link
from .alerts import Mail, Settings as AlertSettings, Webhook

LISTEN = '127.0.0.1:8490'
MOST_SWITCHES, MOST_LINKS, MOST_LEASE_FILES, MOST_PLANS = 10_000, 4096, 16, 1000
_PLACE = r'(\[[0-9A-Fa-f:.%a-z]+\]|[^][:\s]+):\d{1,5}'


@dataclass
class Tls:
    """Files; all empty: none."""
    private_key: Optional[str] = None
    certificate: Optional[str] = None
    ca_cert: Optional[str] = None

    @property
    def files(self) -> Tuple[Optional[str], Optional[str], Optional[str]]:
        """As ofqos.secure takes them"""
        return self.certificate, self.private_key, self.ca_cert


@dataclass
class SwitchSettings:
    """Where they are, and who may be one."""
    connect: List[str] = field(default_factory=list)
    accept: List[str] = field(default_factory=list)
    tls: Tls = field(default_factory=Tls)
    approve: bool = False                   # new ones wait for `ofqos switches approve`
    names: Dict[str, str] = field(default_factory=dict)


@dataclass
class PolicySettings:
    policy: Optional[str] = None
    settle: float = 2.0


@dataclass
class WebSettings:
    """The page, and its API"""
    changes: bool = False
    viewers: int = 256
    interval: float = 1.0
    profiles: Optional[str] = None
    links: List[Link] = field(default_factory=list)
    topology: Optional[str] = None          # URL of a service that knows links


@dataclass
class HistorySettings:
    file: Optional[str] = None              # default: below the state directory
    megabytes: int = 512


@dataclass
class MetricsSettings:
    timeout: float = 4.0
    max_age: float = 1.0


@dataclass
class Settings:
    """A module that the file does not name is None, and does not run."""
    users: str = ''
    listen: str = LISTEN
    tls: Tls = field(default_factory=Tls)
    behind_tls: bool = False
    state: str = ''
    dpctl: Optional[str] = None
    switches: SwitchSettings = field(default_factory=SwitchSettings)
    network: Optional[PolicySettings] = None
    web: Optional[WebSettings] = None
    history: Optional[HistorySettings] = None
    metrics: Optional[MetricsSettings] = None
    reserve: Optional[reserve.Settings] = None
    shaper: Optional[ShaperSettings] = None
    alerts: Optional[AlertSettings] = None

    @property
    def place(self) -> Tuple[str, int]:
        return parse_place(self.listen)


def load(path: str) -> Settings:
    """Raises Wrong, OSError."""
    with open(path, encoding='utf-8', errors='replace') as f:
        text = f.read(MOST_BYTES + 1)
    return _Reader(os.path.dirname(os.path.abspath(path))).settings(parse(text, path))


class _Reader:
    """`directory`: what the file's relative paths begin at."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    # ------------------------------------------------------------------ values

    def path(self, part: Part) -> str:
        return os.path.join(self.directory, part.text(r'[^\x00\n]{1,4096}', 'a path'))

    @staticmethod
    def flag(part: Part) -> bool:
        return part.one_of('yes', 'no') == 'yes'

    @staticmethod
    def seconds(part: Part, least: float, most: float) -> float:
        right = f'seconds from {least:g} to {most:g}'
        found = float(part.text(r'\d{1,6}(\.\d{1,6})?', right))
        if not least <= found <= most:
            raise part.wrong(f'{found:g} is not right; {right} are')
        return found

    @staticmethod
    def addresses(part: Part) -> List[str]:
        found = []
        for each in part.items(MOST_SWITCHES):
            text = each.text(r'\S{1,300}', 'unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT]')
            try:
                parse_address(text)
            except ValueError as error:
                raise each.wrong(str(error)) from None
            found.append(text)
        return found

    @staticmethod
    def said(part: Part, work: Callable[[], Any]) -> Any:
        """What another module makes of it; what it finds wrong is in this line."""
        try:
            return work()
        except (ValueError, TypeError) as error:
            raise part.wrong(str(error)) from None

    # ------------------------------------------------------------------ parts

    def settings(self, whole: Part) -> Settings:
        readers: Dict[str, Callable[[Part], Any]] = {
            'users': self.path, 'listen': self.listen, 'tls': self.tls, 'behind-tls': self.flag, 'state': self.path,
            'dpctl': self.path, 'switches': self.switches, 'network': self.network, 'web': self.web,
            'history': self.history, 'metrics': self.metrics, 'reserve': self.reserve,
            'shaper': lambda part: self.shaper(part, parts['switches']), 'alerts': self.alerts}
        made = Settings(state=commandline.state('ofqosd'))
        parts = whole.keys(readers, needed=('users', 'switches'))
        for key, part in parts.items():
            setattr(made, key.replace('-', '_'), readers[key](part))
        if not (made.network or made.web or made.metrics or made.reserve or made.shaper):
            raise whole.wrong('nothing is to be done: name network, web, metrics, reserve or shaper')
        if made.history and not made.web:
            raise parts['history'].wrong('history is kept for the page: name web, too')
        return made

    @staticmethod
    def listen(part: Part) -> str:
        found = part.text(_PLACE, f'HOST:PORT, such as {LISTEN},')
        if int(found.rpartition(':')[2]) > 0xffff:
            raise part.wrong(f'{found}: a port is a number up to 65535')
        return found

    def tls(self, part: Part) -> Tls:
        return Tls(**{key.replace('-', '_'): self.path(each) for key, each in
                      part.keys(('private-key', 'certificate', 'ca-cert'), needed=('private-key', 'certificate')).items()})

    def switches(self, part: Part) -> SwitchSettings:
        made = SwitchSettings()
        keys = part.keys(('connect', 'accept', 'tls', 'new', 'names'))
        for key, each in keys.items():
            if key in ('connect', 'accept'):
                setattr(made, key, self.addresses(each))
            elif key == 'tls':
                made.tls = self.tls(each)
            elif key == 'new':
                made.approve = each.one_of('wait', 'welcome') == 'wait'
            else:
                made.names = {self.datapath(each, name): value.text(r'.{1,60}', 'a name of up to 60 characters')
                              for name, value in each.keys(most=MOST_SWITCHES).items()}
        if not made.connect and not made.accept:
            raise part.wrong('no switch: name addresses to connect to, or where to accept them')
        for name in ('connect', 'accept'):
            if any(text.startswith('tls:') for text in getattr(made, name)) and not made.tls.certificate:
                raise keys[name].wrong('a tls: address needs a key, a certificate and a CA: switches.tls')
        return made

    @staticmethod
    def datapath(part: Part, text: str) -> str:
        try:
            return f'{int(text.replace(":", ""), 16):016x}'
        except ValueError:
            raise part.wrong(f'{text!r} is no datapath id, such as 0000000000000001') from None

    def network(self, part: Part) -> PolicySettings:
        made = PolicySettings()
        for key, each in part.keys(('policy', 'settle')).items():
            if key == 'policy':
                made.policy = self.path(each)
            else:
                made.settle = self.seconds(each, 0, 3600)
        return made

    def web(self, part: Part) -> WebSettings:
        made = WebSettings()
        for key, each in part.keys(('changes', 'viewers', 'interval', 'profiles', 'links', 'topology')).items():
            if key == 'changes':
                made.changes = self.flag(each)
            elif key == 'viewers':
                made.viewers = each.number(1, 10_000)
            elif key == 'interval':
                made.interval = self.seconds(each, 0.2, 60)
            elif key == 'profiles':
                made.profiles = self.path(each)
            elif key == 'links':
                made.links = [self.link(one) for one in each.items(MOST_LINKS)]
            else:
                made.topology = each.text(r'https?://\S{1,1000}', 'an http: or https: URL')
        return made

    def link(self, part: Part) -> Link:
        words = [each.text(r'\S{1,60}', 'SWITCH:PORT') for each in part.items(3)]
        link: Link = self.said(part, lambda: parse_link(words))
        return link

    def history(self, part: Part) -> HistorySettings:
        made = HistorySettings()
        for key, each in part.keys(('file', 'megabytes')).items():
            if key == 'file':
                made.file = self.path(each)
            else:
                made.megabytes = each.number(LEAST_MB, 1 << 20)
        return made

    def metrics(self, part: Part) -> MetricsSettings:
        return MetricsSettings(**{key.replace('-', '_'): self.seconds(each, 0.01, 300) for key, each in
                                  part.keys(('timeout', 'max-age')).items()})

    def reserve(self, part: Part) -> reserve.Settings:
        """The members of its own file, but for those that are the daemon's: where it listens, and who may."""
        made = reserve.Settings()
        known = [name for name in reserve.Settings.__dataclass_fields__ if name not in ('rest_api', 'token')]
        for key, each in part.keys(known).items():
            if key == 'state':
                made.state = self.path(each)
            elif key == 'links':
                made.links = {place: rate for one in [each.keys(most=MOST_LINKS)] for name, value in one.items()
                              for place, rate in self.said(value, partial(reserve.checked, key, {name: value.node.value})).items()}
            else:
                setattr(made, key, self.said(each, partial(reserve.checked, key, self.plain(each))))
        return made

    def shaper(self, part: Part, switches: Part) -> ShaperSettings:
        options = 'core', 'edge', 'download', 'upload', 'unlisted', 'leaf'
        keys = part.keys(('switch', 'devices', 'network', 'radius', 'leases', *options), needed=('switch', 'devices', 'core', 'edge'))
        named = {name: dp for dp, name in self.switches(switches).names.items()}
        text = keys['switch'].text(r'\S{1,60}', "a switch's name or datapath id")
        if text not in named and not re.fullmatch(r'[0-9A-Fa-f:]{1,23}', text):
            raise keys['switch'].wrong(f'{text} is no datapath id, and none of switches.names: {", ".join(named) or "there are none"}')
        devices = self.path(keys['devices'])
        if is_own(devices) == ('network' in keys):
            raise part.wrong('network is missing' if 'network' not in keys else 'network does not go with a list of YAML, which has the sites')
        made = ShaperSettings(int(named.get(text) or self.datapath(keys['switch'], text), 16), devices, self.path(keys['network']) if 'network' in keys else '')
        for key in options:
            if key in keys and key == 'leaf':
                made.options[key] = keys[key].one_of(*LEAVES)
            elif key in keys and key in ('core', 'edge'):
                made.options[key] = keys[key].text(r'\S{1,60}', "a port's name or number")
            elif key in keys:
                made.options[key] = keys[key].text(r'\S{1,40}', 'a rate, such as 1gbit')
                self.said(keys[key], partial(rate_of, key, made.options[key]))
        if made.options['core'] == made.options['edge']:
            raise keys['edge'].wrong('core and edge are the same port')
        if 'radius' in keys:
            made.sources.radius = self.radius(keys['radius'])
        if 'leases' in keys:
            made.sources.leases = [self.lease_file(each) for each in keys['leases'].items(MOST_LEASE_FILES)]
        return made

    def radius(self, part: Part) -> radius.Settings:
        made = radius.Settings()
        keys = part.keys(('listen', 'coa', 'secret', 'clients', 'hold', 'plans'), needed=('secret', 'clients'))
        for key, each in keys.items():
            if key in ('listen', 'coa'):
                setattr(made, key, self.listen(each))
            elif key == 'plans':
                made.plans = {name: self.plan(one) for name, one in each.keys(most=MOST_PLANS).items()}
            elif key == 'secret':
                made.secret = self.path(each)
            elif key == 'hold':
                made.hold = self.seconds(each, 60, 999_999)
            else:
                made.clients = [self.host(one) for one in each.items(radius.MOST_CLIENTS)]
        self.said(part, radius.library)
        return made

    def plan(self, part: Part) -> Plan:
        keys = part.keys(('down', 'up'), needed=('down', 'up'))
        down, up = (self.said(keys[way], partial(rates_of, keys[way].text(r'[^\x00-\x1f\x7f]{1,60}', 'a rate, such as 5mbit to 50mbit'))) for way in ('down', 'up'))
        return Plan(Pair(down[1], up[1]), Pair(down[0], up[0]))

    def host(self, part: Part) -> str:
        return str(self.said(part, partial(ipaddress.ip_address, part.text(r'\S{1,50}', 'an address, such as 192.0.2.1'))))

    def lease_file(self, part: Part) -> LeaseFile:
        keys = part.keys(('kind', 'file'), needed=('kind', 'file'))
        return LeaseFile(keys['kind'].one_of(*leases.KINDS), self.path(keys['file']))

    def alerts(self, part: Part) -> AlertSettings:
        made = AlertSettings()
        keys = part.keys(('hold', 'webhook', 'mail'))
        for key, each in keys.items():
            if key == 'hold':
                made.hold = self.seconds(each, 0, 3600)
            elif key == 'webhook':
                made.webhook = self.webhook(each)
            else:
                made.mail = self.mail(each)
        if not made.webhook and not made.mail:
            raise part.wrong('nobody is told: name webhook or mail')
        return made

    def webhook(self, part: Part) -> Webhook:
        keys = part.keys(('url', 'token-file'), needed=('url',))
        return Webhook(keys['url'].text(r'https?://\S{1,1000}', 'an http: or https: URL'),
                              self.secret(keys['token-file']) if 'token-file' in keys else '')

    def mail(self, part: Part) -> Mail:
        keys = part.keys(('server', 'from', 'to', 'starttls', 'user', 'password-file'), needed=('server', 'from', 'to'))
        host, _, port = keys['server'].text(_PLACE, 'HOST:PORT, such as mail.example:587,').rpartition(':')
        right = 'an address, such as noc@example.org'
        made = Mail((host.strip('[]'), int(port)), keys['from'].text(r'[^\s@]+@[^\s@]+', right),
                           [each.text(r'[^\s@]+@[^\s@]+', right) for each in keys['to'].items(20)])
        if 'starttls' in keys:
            made.starttls = self.flag(keys['starttls'])
        if 'user' in keys:
            made.user = keys['user'].text(r'\S{1,200}', 'a name')
            if 'password-file' not in keys:
                raise part.wrong('a user needs a password-file')
            made.password = self.secret(keys['password-file'])
        return made

    def secret(self, part: Part) -> str:
        """The first line of a file that nobody else may read"""
        path = self.path(part)
        try:
            lines = secure.read_private(path)
        except (OSError, ValueError) as error:
            raise part.wrong(f'{path}: {error.strerror}' if isinstance(error, OSError) else str(error)) from None
        if not lines:
            raise part.wrong(f'{path}: it is empty')
        return lines[0]

    @staticmethod
    def plain(part: Part) -> Any:
        """A number where it is one, else the text"""
        text = part.text(r'\S{1,100}', 'a number or a rate')
        try:
            return float(text)
        except ValueError:
            return text


def contexts(settings: Settings) -> Tuple[Optional[ssl.SSLContext], Optional[ssl.SSLContext], Optional[ssl.SSLContext]]:
    """For HTTP; to switches, and from them.  ValueError, OSError."""
    return (secure.context(*settings.tls.files, server=True), *secure.switch_contexts(*settings.switches.tls.files))


__all__ = ['Settings', 'Wrong', 'contexts', 'load']
