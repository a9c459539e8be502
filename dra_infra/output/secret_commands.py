"""Find secrets among the arguments of programs whose options do not say so by their names: `mysql -p`, `curl -u`.

The table has one row per use. `@` stands for the secret, `*` for what may stand before it in the same argument:

- `-p@` is an option with its value in the same argument, `-p @` one with its value in the same or in the next one;
- `*/@` is an argument that is no option;
- `<2>` is the second argument that is no option, behind the subcommand if the row names one.

The first program of a row with its use is also the example that the tests plant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from dra_infra.output.secret_names import ITEM, is_harmless_value
from dra_infra.output.secret_tokens import Span


@dataclass(frozen=True)
class Command:
    """A use of programs that has a secret.

    Args:
        programs: Their names.
        subcommand: Words that stand among the arguments before the secret; empty if any may.
        use: The argument, as the module describes it.
    """

    programs: Sequence[str]
    subcommand: Sequence[str]
    use: str

    @property
    def example(self) -> str:
        """A command line with `@` in place of the secret."""
        position = int(self.use[1:-1]) if self.use.startswith("<") else 0
        use = " ".join([*(f"a{index}" for index in range(1, position)), "@"]) if position else self.use
        return " ".join([self.programs[0], *self.subcommand, use.replace("*", "ada")])


def _commands(rows: str) -> Iterator[Command]:
    for line in filter(None, map(str.strip, rows.splitlines())):
        programs, subcommand, *uses = (part.strip() for part in line.split("|"))
        for use in uses:
            yield Command(tuple(programs.split()), tuple(subcommand.split()), use)


COMMANDS: Final = tuple(
    _commands(r"""
    mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlshow mysqlslap mysqlbinlog mysqlpump mysqlsh mysqld_safe || -p@
    mariadb mariadb-dump mariadb-admin mariadb-import mariadb-check mariadb-show mariadb-binlog mariadb-backup || -p@
    mydumper myloader pt-query-digest pt-table-checksum xtrabackup || -p @
    psql pg_dump pg_restore || password=@
    sqlcmd bcp osql isql tsql fisql || -P @
    sqlplus sqlldr expdp impdp rman tnsping || */@
    mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles || -p @
    redis-cli valkey-cli keydb-cli || -a @ | --pass @
    cqlsh cypher-shell arangosh beeline hbase phoenix-sqlline vsql gsql nzsql || -p @
    vsql || -w @
    influx || -t @
    neo4j-admin | set-initial-password | <1>
    db2 | using | <1>
    ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldapcompare ldapmodrdn ldappasswd ldapexop || -w @
    ldappasswd || -a @ | -s @
    mosquitto_pub mosquitto_sub mosquitto_rr mosquitto_ctrl || -P @ | --pw @
    mosquitto_passwd | -b | <3>
    rabbitmqadmin || -p @
    rabbitmqctl | add_user | <2>
    rabbitmqctl | change_password | <2>
    rabbitmqctl | authenticate_user | <2>
    erl iex elixir werl || -setcookie @ | --cookie @
    curl || -u *:@ | --user *:@ | -U *:@ | --proxy-user *:@ | -E *:@ | --cert *:@ | --pass @ | --oauth2-bearer @ | -b @ | --cookie @
    wget aria2c || --http-passwd @ | --ftp-password @
    http https xh httpie || -a *:@ | --auth *:@
    ab wrk hey siege || -A *:@ | -P *:@ | -a *:@
    lftp ncftpput ncftpget || -u *,@ | -p @
    ftp tnftp || -u *:@
    smbclient smbget smbcacls smbtree rpcclient net winexe wmic || -U *%@ | --user *%@ | --user=*%@
    smbmap crackmapexec nxc netexec evil-winrm || -p @
    mount mount.cifs || -o *,password=@ | -o *,pass=@
    xfreerdp wlfreerdp mstsc || /p:@
    rdesktop || -p @
    sshpass || -p @
    plink pscp psftp || -pw @
    docker podman nerdctl helm oras skopeo crane buildah regctl img || login -p @
    docker podman nerdctl helm oras skopeo crane buildah regctl img | login | -p @
    az cf oc ibmcloud bx heroku tsh | login | -p @
    oc kubectl | login | --token @
    ibmcloud | login | --apikey @
    vault bao | login | <1>
    vault bao | unseal | <1>
    twine flit hatch poetry uv | upload | -p @
    uv poetry hatch twine | publish | -p @ | -t @ | --token @
    cargo | login | <1>
    npm yarn pnpm || --_auth @ | --_authToken @
    dotnet nuget || -k @ | --api-key @ | -ApiKey @
    gem || --key @
    kubectl oc | create secret | --from-literal=*=@ | --from-literal *=@
    mc mcli | alias set | <4>
    az | keyvault | --value @
    aws | ssm | --value @
    gcloud | secrets | --data @
    aws | configure set aws_session_token | <1>
    unzip zip zipcloak || -P @
    7z 7za 7zr 7zz p7zip || -p@
    rar unrar || -p@ | -hp@
    qpdf pdftk pdftotext || -upw @ | -opw @ | --password @
    openssl || -k @ | -K @ | -passin pass:@ | -passout pass:@ | -pass pass:@ | -password pass:@ | -psk @ | -macopt hexkey:@ | -macopt key:@
    gpg gpg2 gpgsm || --passphrase @
    keytool jarsigner apksigner || -storepass @ | -keypass @ | --ks-pass pass:@ | --key-pass pass:@
    htpasswd | -b | <3>
    htpasswd | -nb | <2>
    htpasswd | -bc | <3>
    htpasswd | -cb | <3>
    htpasswd | -nbB | <2>
    useradd usermod adduser || -p @ | --password @
    ipmitool ipmipower ipmiconsole || -P @ | -p @
    racadm idracadm || -p @
    snmpget snmpwalk snmpset snmpbulkwalk snmpgetnext snmptrap snmptable || -c @ | -A @ | -X @
    wpa_passphrase || <2>
    nmcli || password @ | wifi-sec.psk @ | 802-11-wireless-security.psk @
    iwctl || --passphrase @
    iwconfig || key s:@
    x11vnc || -passwd @
    vncviewer || -passwd @
    couchbase-cli cbq cbbackupmgr cbbackup cbrestore cbimport || -p @
    elasticsearch-users elasticsearch-reset-password | useradd | -p @
    grafana-cli grafana | reset-admin-password | <1>
    kadmin kinit || -w @
    impala-shell || --ldap_password @
    svn svnsync hg cvs || --password @
    sendemail swaks || -xp @ | -ap @ | --auth-password @
    msmtp mutt || --passwordeval @
    sonar-scanner || -Dsonar.login=@ | -Dsonar.token=@
    ansible ansible-playbook || -e *_pass=@
    swift openstack || -K @ | --os-password @
    s3cmd || --secret_key=@
    rclone | obscure | <1>
    rclone | reveal | <1>
    telegram-send tgsend || --token @
    wp | user create | --user_pass=@
    consul nomad || -token=@ | -token @ | --token=@
    k3s rke2 | server | -t @
    k3s rke2 | agent | -t @
    kubeadm || --certificate-key @
    tailscale || --authkey @ | --auth-key @
    ngrok | authtoken | <1>
    ngrok | add-authtoken | <1>
    gh glab | login | -t @ | --token @
    circleci | setup | --token @
    snyk | auth | <1>
    wandb | login | <1>
    huggingface-cli hf | login | --token @
    ngc || --api-key @
    databricks || --token @
    """)
)

_PROGRAMS: Final = frozenset(program for command in COMMANDS for program in command.programs)
_NAME: Final = re.compile(r"(?<![\w.-])[\w.-]++(?=[\s\"'\\,])")
"""What may be the name of a program: a whole word with something behind it."""
_LONGEST: Final = 2048
"""Characters of a command line, and of one argument, that are read."""
_MOST: Final = 64
"""Arguments of a command line that are read."""
_SHELL_WORD: Final = re.compile(
    r"""(?P<word>(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|\\[^\s]|[^\s"'\\;|&])++)|\\\r?\n|(?P<end>[\n\r;|&\x1f])"""
)
_CLOSED: Final = re.compile(r"\\{0,3}(?P<quote>[\"'])")
_OPTION: Final = re.compile(r"-\w(?=@)|-\w\w(?=@)|/\w:|-[\w.-]+=")
"""An option in front of its value."""
_QUOTES: Final = "\"'\\,[]"
_REFERENCE: Final = re.compile(r"\$[\w({]|`|%\w+%|@")
"""How an argument begins that a shell or a program fills in: a variable, a command, a file."""


def find_in_commands(text: str) -> Iterator[Span]:
    """Find secrets among the arguments of the programs in the table."""
    done = 0
    if _PROGRAMS.isdisjoint(_NAME.findall(text)):
        return
    for match in _NAME.finditer(text):
        if match.start() < done or match[0] not in _PROGRAMS:
            continue
        arguments = _arguments(text, match.start(), match.end())
        if len(arguments) > _MOST // 2 or (arguments and arguments[-1][1] - match.end() > _LONGEST // 2):
            # Only the last arguments are read as other commands, so that a row of names takes linear time.
            done = max(arguments[-(len(arguments) // 4 + 1)][0], arguments[-1][1] - _LONGEST // 4)
        for subcommand, uses in _uses()[match[0]].items():
            behind = _behind(subcommand, text, arguments)
            if behind is not None:
                yield from uses.secrets(text, arguments, behind)


def _arguments(text: str, program: int, start: int) -> list[Span]:
    """The arguments behind the name of a *program*, without quotes around them."""
    found: list[Span] = []
    if text.startswith(ITEM, start):
        start += 1
        while start < len(text) and len(found) < _MOST:
            end = text.find(ITEM, start)
            end = end if end >= 0 else len(text)
            found.append((start, end))
            start = end + 1
        return found
    if program and (closed := _CLOSED.match(text, start)) and closed["quote"] == text[program - 1]:
        # The name is in quotes, as an item of a list in JSON.
        start = closed.end()
    # A quote that nothing closes is passed over, as blanks are.
    for match in _SHELL_WORD.finditer(text, start, min(len(text), start + _LONGEST)):
        if match["end"] or len(found) == _MOST:
            break
        if match["word"]:
            found.append(_without_quotes(text, *match.span()))
    return [span for span in found if span[0] < span[1]]


def _without_quotes(text: str, start: int, end: int) -> Span:
    while start < end and text[start] in _QUOTES:
        start += 1
    while start < end and text[end - 1] in _QUOTES:
        end -= 1
    return start, end


def _behind(subcommand: Sequence[str], text: str, arguments: Sequence[Span]) -> int | None:
    """The number of the argument behind the *subcommand*; None without it."""
    position = 0
    for word in subcommand:
        while position < len(arguments) and text[slice(*arguments[position])] != word:
            position += 1
        if position == len(arguments):
            return None
        position += 1
    return position


class _Uses:
    """What of the arguments of a program is secret."""

    def __init__(self) -> None:
        self._behind: defaultdict[str, list[re.Pattern[str]]] = defaultdict(list)
        self._within: defaultdict[str, list[re.Pattern[str]]] = defaultdict(list)
        self._plain: list[re.Pattern[str]] = []
        self._numbers: list[int] = []

    def add(self, use: str) -> None:
        option, blank, form = use.rpartition(" ")
        if use.startswith("<"):
            self._numbers.append(int(use[1:-1]))
        elif blank:
            self._behind[option].append(_form(form))
            self._within[option if len(option) == len("-p") else f"{option}="].append(_form(form))
        elif match := _OPTION.match(form):
            self._within[match[0]].append(_form(form[match.end() :]))
        else:
            self._plain.append(_form(form))

    def secrets(self, text: str, arguments: Sequence[Span], behind: int) -> Iterator[Span]:
        """The secrets of *arguments*, of which the first that may be one is number *behind*."""
        if self._numbers:
            plain = [span for span in arguments[behind:] if text[span[0]] != "-"]
            for number in self._numbers:
                yield from _value(text, *plain[number - 1 : number])
        for index, (start, end) in enumerate(arguments):
            argument = text[start : min(end, start + _LONGEST)]
            for pattern in self._behind.get(argument, ()):
                for following in arguments[index + 1 : index + 2]:
                    yield from _inside(pattern, text, *following)
            for option in (argument[:2], argument[:3], argument.partition("=")[0] + "="):
                for pattern in self._within.get(option, ()):
                    yield from _inside(pattern, text, start + len(option), end)
            for pattern in self._plain if argument[0] not in "-/" else ():
                yield from _inside(pattern, text, start, end)


def _inside(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    if text.startswith("=", start):
        start += 1
    if match := pattern.match(text, *_without_quotes(text, start, end)):
        yield from _value(text, match.span("v"))


def _value(text: str, *spans: Span) -> Iterator[Span]:
    for span in spans:
        start, end = _without_quotes(text, *span)
        value = text[start : min(end, start + _LONGEST)]
        if not is_harmless_value(value) and not _REFERENCE.match(value):
            yield start, end


@cache
def _form(form: str) -> re.Pattern[str]:
    """The pattern of a value; the secret in it is `v`."""
    before = form.removesuffix("@")
    parts = []
    for index, part in enumerate(before.split("*")):
        if index:
            parts.append(f"[^{re.escape(part[:1])}]{{1,128}}" if part[:1] in ":%,/" else ".{1,128}?")
        parts.append(re.escape(part))
    # Behind a password that is an argument by itself may stand the address of the database.
    end = r"(?:@[\w./:-]+)?\Z" if form == "*/@" else r"\Z"
    return re.compile(f"{''.join(parts)}(?P<v>.{{1,1024}}?){end}", re.DOTALL)


@cache
def _uses() -> Mapping[str, Mapping[Sequence[str], _Uses]]:
    """The uses of each program by their subcommands."""
    found: defaultdict[str, defaultdict[Sequence[str], _Uses]] = defaultdict(lambda: defaultdict(_Uses))
    for command in COMMANDS:
        for program in command.programs:
            found[program][command.subcommand].add(command.use)
    return found
