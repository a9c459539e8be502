"""Find tokens by the form that their maker gives them: a table of makers, one row per kind of token.

A row's form is written as the token is, with `{class}{length}` in place of what is random: `gsk_{a40}` is `gsk_` and at
least 40 letters and digits. A row needs nothing else: its pattern and the example that the tests plant come from its form.

A search takes linear time. It looks at the beginnings of words only, and at no more than `_JUDGED` characters of each
before it knows that they are a token.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

Span = tuple[int, int]
"""Beginning and end of a secret in a text."""

CLASSES: Final[Mapping[str, str]] = {
    "a": "0-9A-Za-z",
    "b": "0-9A-Za-z+/",
    "d": "0-9",
    "h": "0-9a-f",
    "l": "0-9a-z",
    "u": "0-9A-Z",
    "w": "0-9A-Za-z_-",
    "x": "0-9A-Fa-f",
}
"""Characters of what is random in a form."""

RANDOM: Final = re.compile(r"\{(?P<characters>[abdhluwx])(?P<exactly>=?)(?P<length>\d+)\}")
"""What is random in a form: at least so many characters of a class, or with `=` exactly so many."""


@dataclass(frozen=True)
class Token:
    """A kind of token.

    Args:
        kind: Who makes it, and what it is.
        form: How it is written, as the module describes it.
    """

    kind: str
    form: str


def _tokens(rows: str) -> tuple[Token, ...]:
    pairs = (line.rpartition(" ") for line in map(str.strip, rows.splitlines()) if line)
    return tuple(Token(kind.strip(), form) for kind, _, form in pairs)


TOKENS: Final = _tokens(r"""
    1Password secret key                A3-{u6}-{u5}
    1Password service account           ops_{b30}
    42                                  s-s4t2ud-{h40}
    Adafruit IO                         aio_{a24}
    Adobe client secret                 p8e-{w28}
    age                                 AGE-SECRET-KEY-{u50}
    Aikido                              AIK_SECRET_{a20}
    Aikido CI                           AIK_CI_{a20}
    Airtable API key                    key{a=14}
    Airtable personal token             pat{a14}.{h40}
    Alibaba access key id               LTAI{a=20}
    Alibaba short access key id         LTAI{a=16}
    Alibaba STS key id                  STS.{a20}
    Anthropic                           sk-ant-{w20}
    Apify                               apify_api_{a20}
    Asaas                               $aact_{w20}
    AssemblyScript registry             ask_{a32}
    Astra                               AstraCS:{a20}
    Atlassian                           ATATT3{w20}
    Atlassian access token              ATCTT3{w20}
    Atlassian OAuth                     ATOA{w40}
    Atlassian, other                    ATAT{w60}
    Authress                            sc_{l5}.{a4}.acc_{l10}.{a20}
    Authress, newer                     scauth_{l5}.{a4}.acc_{l10}.{b20}
    AWS bearer key id                   ABIA{u=16}
    AWS Bedrock                         ABSK{b40}
    AWS Bedrock, short                  bedrock-api-key-{b40}
    AWS context key id                  ACCA{u=16}
    AWS key id                          AKIA{u=16}
    AWS temporary key id                ASIA{u=16}
    Azure AD client secret              {a=3}7Q~{w25}
    Azure AD client secret, newer       {a=3}8Q~{w25}
    Baidu                               bce-v3/ALTAK-{a16}/{h32}
    Bitbucket app password              ATBB{a24}
    Bitbucket data center               BBDC-{b24}
    Brave search                        BSA{w27}
    Brevo                               xkeysib-{x32}
    Brevo SMTP                          xsmtpsib-{x32}
    Buildkite agent                     bkaj_{a24}
    Buildkite cluster                   bkct_{a24}
    Buildkite user                      bkua_{l32}
    Canva                               cnvca{w32}
    Cartesia                            sk_car_{a16}
    Cerebras                            csk-{l32}
    Checkout.com                        sk_{h8}-{h4}-{h4}-{h4}-{h12}
    CircleCI personal                   CCIPAT_{a10}
    CircleCI project                    CCIPRJ_{a10}
    Clerk, Stripe and others            sk_live_{a10}
    Clerk, Stripe and others, test      sk_test_{a10}
    ClickHouse Cloud                    4b1d{a=38}
    ClickUp                             pk_{d6}_{a24}
    Clojars                             CLOJARS_{l40}
    Cloudflare account token            cfat_{a30}
    Cloudflare origin CA                v1.0-{h24}-{h100}
    Cloudflare user token               cfut_{a30}
    Cloudsmith                          csa_{a32}
    CockroachDB                         CCDB1_{a20}
    ConfigCat                           configcat-sdk-1/{w20}
    Contentful                          CFPAT-{w30}
    Cursor                              key_{h28}
    Databento                           db-{a=29}
    Databricks                          dapi{h32}
    dbt service                         dbtc_{w30}
    dbt user                            dbtu_{w30}
    Defined Networking                  dnkey-{a20}
    Deno                                ddp_{a30}
    Deno organization                   ddo_{a30}
    DevCycle server                     dvc_server_{a10}
    Devin                               cog_{l40}
    Devin personal                      apk_user_{b40}
    DigitalOcean OAuth                  doo_v1_{h40}
    DigitalOcean personal               dop_v1_{h40}
    DigitalOcean refresh                dor_v1_{h40}
    Docker organization                 dckr_oat_{w20}
    Docker personal                     dckr_pat_{w20}
    Docker Swarm join                   SWMTKN-1-{l20}
    Docker Swarm unlock                 SWMKEY-1-{b30}
    Doppler audit                       dp.audit.{a20}
    Doppler CLI                         dp.ct.{a20}
    Doppler personal                    dp.pt.{a20}
    Doppler SCIM                        dp.scim.{a20}
    Doppler service                     dp.st.{w20}
    Doppler service, by environment     dp.st.{w2}.{w20}
    Doppler service account             dp.sa.{a20}
    Dropbox                             sl.{w40}
    Duffel                              duffel_live_{w20}
    Duffel test                         duffel_test_{w20}
    Dynatrace                           dt0c01.{a20}
    Dynatrace OAuth                     dt0s02.{a8}.{a20}
    Dynatrace platform                  dt0s16.{a8}.{a20}
    E2B                                 e2b_{h32}
    EasyPost                            EZAK{a40}
    EasyPost test                       EZTK{a40}
    Elastic Cloud                       essu_{b20}
    ElevenLabs                          sk_{h40}
    Endor Labs                          endr+{a12}
    Exoscale                            EXO{h24}
    Facebook                            EAA{a80}
    Figma                               figd_{w30}
    Figma OAuth                         figo_{w30}
    Firecrawl                           fc-{h32}
    Fireworks                           fw_{a20}
    Flutterwave                         FLWSECK_TEST-{a10}
    Flutterwave encryption              FLWSECK_TEST{a12}
    Flutterwave live                    FLWSECK-{a20}
    Fly machine                         fm2_{b30}
    Fly organization                    fo1_{w30}
    Frame.io                            fio-u-{w40}
    GitHub OAuth                        gho_{a30}
    GitHub personal                     ghp_{a30}
    GitHub refresh                      ghr_{a30}
    GitHub server                       ghs_{a30}
    GitHub user                         ghu_{a30}
    GitHub, fine-grained                github_pat_{a20}
    GitLab agent                        glagent-{w20}
    GitLab CI build                     glcbt-{w20}
    GitLab deploy                       gldt-{w20}
    GitLab feature flags                glffct-{w20}
    GitLab feed                         glft-{w20}
    GitLab incoming mail                glimt-{w20}
    GitLab OAuth                        gloas-{w20}
    GitLab personal                     glpat-{w20}
    GitLab pipeline trigger             glptt-{w20}
    GitLab registration                 GR1348941{w20}
    GitLab runner                       glrt-{w20}
    GitLab runner, partial              glrtr-{w20}
    GitLab SCIM                         glsoat-{w20}
    GitLab workspace                    glwt-{w20}
    GoCardless                          live_{w40}
    Google API key                      AIza{w35}
    Google Gemini                       AQ.Ab8{w20}
    Google OAuth access                 ya29.{w20}
    Google OAuth client secret          GOCSPX-{w20}
    Google OAuth refresh                1//0{w30}
    Google storage HMAC id              GOOG1E{u30}
    Grafana API key                     eyJrIjoi{a20}
    Grafana Cloud                       glc_{b20}
    Grafana service account             glsa_{a20}
    Groq                                gsk_{a30}
    Harness                             pat.{w20}.{a20}
    Harness service account             sat.{w20}.{a20}
    HashiCorp Terraform                 {a=14}.atlasv1.{w40}
    HashiCorp Vault batch               hvb.{w20}
    HashiCorp Vault recovery            hvr.{w20}
    HashiCorp Vault service             hvs.{w20}
    HashiCorp Vault, old                s.{a=24}
    Heroku                              HRKU-{w30}
    Honeycomb ingest                    hcaik_{a30}
    Honeycomb ingest, by region         hcxik_{a30}
    HubSpot Europe                      pat-eu1-{x8}-{x4}-{x4}-{x4}-{x12}
    HubSpot North America               pat-na1-{x8}-{x4}-{x4}-{x4}-{x12}
    Hugging Face                        hf_{a30}
    Hugging Face organization           api_org_{a30}
    Infisical service                   st.{h20}.{h20}
    Instagram                           IGQV{w60}
    Intercom                            dG9r{b40}
    JFrog API key                       AKC{a30}
    JFrog reference                     cmVmdGtu{a40}
    Jina                                jina_{a30}
    JSON Web Token                      eyJ{w10}.eyJ{w10}.{w10}
    Langfuse                            sk-lf-{h8}-{h4}-{h4}-{h4}-{h12}
    LangSmith personal                  lsv2_pt_{h28}
    LangSmith service                   lsv2_sk_{h28}
    LaunchDarkly API                    api-{h=8}-{h=4}-{h=4}-{h=4}-{h12}
    LaunchDarkly SDK                    sdk-{h=8}-{h=4}-{h=4}-{h=4}-{h12}
    Lichess                             lip_{a16}
    Linear                              lin_api_{a20}
    Linear OAuth                        lin_oauth_{a20}
    Lob                                 live_pub_{h31}
    MailerSend                          mlsn.{a28}
    Mailgun                             key-{h32}
    Mapbox secret                       sk.eyJ{w20}.{w20}
    MaxMind                             {a=6}_{a=29}_mmk
    Meraki or Cisco Webex bot           Y2lzY29zcGFyazov{b20}
    Midtrans                            Mid-server-{w16}
    MongoDB Atlas service account       mdb_sa_sk_{w30}
    Neon                                napi_{l40}
    Netlify                             nfp_{a30}
    New Relic admin                     NRAA-{h24}
    New Relic browser                   NRJS-{h19}
    New Relic insights                  NRII-{w24}
    New Relic user                      NRAK-{u20}
    ngrok API                           ak_{a=27}
    Notion                              ntn_{a30}
    Notion, old                         secret_{a=43}
    npm                                 npm_{a30}
    NuGet                               oy2{l=43}
    NVIDIA NGC                          nvapi-{w30}
    NVIDIA Starfleet                    nvapi-stg-{w30}
    Octopus Deploy                      API-{u26}
    OneSignal                           os_v2_app_{l40}
    OneSignal organization              os_v2_org_{l40}
    Onfido                              api_live.{w20}
    Onfido in the US                    api_live_us.{w20}
    OpenAI                              sk-{w32}
    OpenAI admin                        sk-admin-{w20}
    OpenAI project                      sk-proj-{w20}
    OpenAI service account              sk-svcacct-{w20}
    OpenRouter                          sk-or-v1-{h32}
    OpenShift                           sha256~{w40}
    Packagist                           packagist_acs_{h40}
    Packagist organization              packagist_out_{h40}
    Packagist organization, read        packagist_ort_{h40}
    Packagist user                      packagist_uut_{h40}
    Paddle                              pdl_live_apikey_{l20}
    PayPal and Braintree                access_token$production${l16}${h32}
    Perplexity                          pplx-{a30}
    Persona                             persona_production_{a16}
    Pinecone                            pcsk_{a5}_{a30}
    Pinterest                           pina_{a20}
    Plaid                               access-production-{h8}-{h4}-{h4}-{h4}-{h12}
    Plaid development                   access-development-{h8}-{h4}-{h4}-{h4}-{h12}
    Plaid test                          access-sandbox-{h8}-{h4}-{h4}-{h4}-{h12}
    PlanetScale OAuth                   pscale_oauth_{w30}
    PlanetScale password                pscale_pw_{w30}
    PlanetScale token                   pscale_tkn_{w30}
    Polar                               polar_pat_{a16}
    Polar access                        polar_at_{w16}
    Polar OAuth                         polar_oat_{a16}
    PostHog personal                    phx_{a30}
    PostHog project                     phc_{a30}
    Postman                             PMAK-{x24}-{x30}
    Postman collection                  PMAT-{u24}
    Prefect bot                         pnb_{l30}
    Prefect user                        pnu_{l30}
    Proof                               prf_cli_{a16}
    Pulumi                              pul-{h40}
    PyPI                                pypi-AgE{w20}
    Ramp                                ramp_sec_{a30}
    Razorpay                            rzp_live_{a14}
    ReadMe                              rdme_{l50}
    Render                              rnd_{a24}
    Replicate                           r8_{a30}
    Resend                              re_{a8}_{a20}
    Rootly                              rootly_{h40}
    RubyGems                            rubygems_{h40}
    RunPod                              rpa_{u30}
    Salesforce                          00D{a=12}!{w40}
    Samsara                             samsara_api_{a24}
    Scaleway key id                     SCW{u=17}
    Scalingo                            tk-us-{w40}
    Segment                             sgp_{a50}
    SendGrid                            SG.{w20}.{w20}
    Sentry organization                 sntrys_{b30}
    Sentry user                         sntryu_{h40}
    SettleMint                          sm_pat_{a16}
    SettleMint application              sm_aat_{a16}
    SettleMint service                  sm_sat_{a16}
    Shippo                              shippo_live_{x40}
    Shippo test                         shippo_test_{x40}
    Shopify access                      shpat_{x30}
    Shopify custom app                  shpca_{x30}
    Shopify private app                 shppa_{x30}
    Shopify shared secret               shpss_{x30}
    Slack app                           xapp-{d1}-{a3}-{w10}
    Slack bot                           xoxb-{d10}-{w10}
    Slack configuration                 xoxe.xoxp-1-{a30}
    Slack cookie                        xoxd-{a20}
    Slack legacy                        xoxo-{d5}-{w10}
    Slack refresh                       xoxe-{d1}-{w20}
    Slack session                       xoxc-{d8}-{w10}
    Slack user                          xoxp-{d10}-{w10}
    Slack workflow                      xwfp-{d10}-{w10}
    Slack workspace                     xoxa-{w10}
    Snyk                                snyk_uat.{h8}.{w20}
    SonarQube analysis                  sqa_{h40}
    SonarQube project                   sqp_{h40}
    SonarQube user                      squ_{h40}
    Sourcegraph                         sgp_{h40}
    Sourcegraph by instance             sgp_{x=16}_{x40}
    Sourcegraph license                 slk_{h40}
    Square access                       sq0atp-{w20}
    Square OAuth                        sq0csp-{w40}
    Square, newer                       EAAA{w=60}
    Square, older                       EAAA{w=22}
    Statsig                             secret-{a30}
    Stripe restricted                   rk_live_{a10}
    Stripe restricted, in production    rk_prod_{a10}
    Stripe restricted, test             rk_test_{a10}
    Stripe webhook                      whsec_{b24}
    Stripe, in production               sk_prod_{a10}
    Supabase management                 sbp_{w30}
    Supabase secret                     sb_secret_{w20}
    Tailscale                           tskey-{l3}-{a8}
    Tavily                              tvly-{w24}
    Telegram bot                        {d=10}:AA{w=33}
    Tencent                             AKID{a=32}
    Terraform Cloud agents              {a=14}.agentv1.{w40}
    Thunderstore                        tss_{a20}
    TogetherAI                          tgp_v1_{w30}
    Trello                              ATTA{h40}
    Twilio account                      AC{h=32}
    Twilio key                          SK{h=32}
    Twitter bearer                      AAAAAAAAAAAAAAAAAAAAA{b40}
    Typeform                            tfp_{w40}
    Ubidots                             BBFF-{a30}
    Unkey                               unkey_{a20}
    UpCloud                             ucat_{u20}
    Val Town                            vtwn_{a20}
    Vercel app                          vca_{a40}
    Vercel gateway                      vck_{a40}
    Vercel integration                  vci_{a40}
    Vercel personal                     vcp_{a40}
    Vercel refresh                      vcr_{a40}
    Volcengine                          AKLT{a40}
    Voyage                              pa-{w=43}
    WakaTime                            waka_{w32}
    Weights & Biases                    wandb_v1_{w40}
    WooCommerce                         ck_{h=40}
    WooCommerce secret                  cs_{h=40}
    Workato                             wrkaus-{w10}.{w10}.{w10}
    xAI                                 xai-{a40}
    Xendit                              xnd_production_{a30}
    Yandex access                       t1.{w20}.{w40}
    Yandex API key                      AQVN{w=36}
    Yandex OAuth                        y0_{w50}
    Zoho                                1000.{h=32}.{h=32}
    Zuplo                               zpka_{a30}
""")

_JUDGED: Final = 64
"""Characters of what is random that are looked at before a word is known to be a token."""
_LONGEST: Final = 512
"""Characters of a part of a token that has another one behind it."""
_DISTINCT: Final = 4
"""Characters of a beginning that few words have: behind a shorter one without a sign a token has a digit."""
_BEFORE: Final = "(?<![0-9A-Za-z])"
_LONG_ENOUGH: Final = r"(?=[\w$.~+/:-]{15})"
"""No token is shorter."""
_LIKE_TOKEN: Final = re.compile(rf"(?<![0-9A-Za-z]){_LONG_ENOUGH}(?=[\w$.~+/:-]{{0,64}}?(?:\d|[a-z][A-Z]))")
"""What is in every text with a token; a text without it does not need the pattern of all beginnings."""
_REST: Final = re.compile(r"[\w.~+/=%-]*")
_CHANGE: Final = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[a-z0-9])|(?<=[0-9])(?=[A-Za-z])")

_SECRET_PART: Final = re.compile(
    r"(?<=[A-Za-z0-9][_-])(?=[A-Za-z]*\d)(?=[\da-z]*[A-Z])(?=[\dA-Z]*[a-z])[0-9A-Za-z]{24,512}"
)
_MAKER: Final = re.compile(r"(?<![0-9A-Za-z])[A-Za-z][0-9A-Za-z]{1,15}(?:[_-][0-9A-Za-z]{1,12}){0,2}[_-]\Z")
_NO_MAKER: Final = re.compile(r"(?:sha|md|h)\d+[_-]\Z")
"""What stands before a digest."""


def find_known_tokens(text: str) -> Iterator[Span]:
    """Find tokens of the table in *text*, and those of makers that it lacks, each to the end of its word."""
    done = 0
    for match in _beginnings().finditer(text) if _LIKE_TOKEN.search(text) else ():
        if match.start() >= done and (end := _end_of_token(text, match.start(), match[0])):
            done = _rest(text, end)
            yield match.start(), done
    for sign, forms in _signs().items():
        for form in forms if sign in text else ():
            for match in _pattern(form).finditer(text):
                yield match.start(), _rest(text, match.end())
    for match in _SECRET_PART.finditer(text):
        # Of a maker that the table lacks: a name, a sign and characters without any order.
        before = text[max(0, match.start() - 48) : match.start()]
        if len(_CHANGE.findall(match[0])) >= 0.4 * len(match[0]):
            maker = _MAKER.search(before)
            if maker and not _NO_MAKER.search(before):
                yield match.start() - len(maker[0]), _rest(text, match.end())


def _rest(text: str, end: int) -> int:
    rest = _REST.match(text, end)
    return end + len(rest[0].rstrip(".")) if rest else end


def _end_of_token(text: str, start: int, beginning: str) -> int:
    """Where the token ends that begins at *start*; 0 if none does."""
    for form in _forms()[beginning]:
        match = _pattern(form).match(text, start)
        if match and _is_random(match[0][len(beginning) :][:_JUDGED], beginning):
            return match.end()
    return 0


def _is_random(text: str, beginning: str) -> bool:
    """True for what is no word or sequence of words: `key-management` is one, and `keyManagement`."""
    if any(map(str.isdigit, text)):
        return True
    distinct = len(beginning) >= _DISTINCT or beginning.endswith("_")
    return distinct and not text.islower() and not text.isupper()


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """The pattern of a form, compiled when a text has its beginning. Lengths are least ones, for makers lengthen tokens."""
    parts = []
    position = 0
    for match in RANDOM.finditer(form):
        length = int(match["length"])
        characters = CLASSES[match["characters"]]
        parts.append(re.escape(form[position : match.start()]))
        if match["exactly"]:
            parts.append(f"[{characters}]{{{length}}}")
            if match.end() == len(form):
                parts.append(f"(?![{characters}])")
        else:
            longest = max(length, _JUDGED if match.end() == len(form) else _LONGEST)
            parts.append(f"[{characters}]{{{length},{longest}}}+")
        position = match.end()
    return re.compile("".join((_BEFORE, *parts, re.escape(form[position:]))))


@cache
def _forms() -> Mapping[str, list[str]]:
    """The forms of tokens by how they begin."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for token in TOKENS:
        if beginning := token.form.partition("{")[0]:
            found[beginning].append(token.form)
    # A longer beginning is matched first, and may be that of no token where a shorter one is.
    for beginning in found:
        for shorter in (beginning[:length] for length in range(len(beginning) - 1, 0, -1)):
            found[beginning] += found.get(shorter, ())
    return found


@cache
def _beginnings() -> re.Pattern[str]:
    return re.compile(_BEFORE + _LONG_ENOUGH + any_of(_forms()))


@cache
def _signs() -> Mapping[str, list[str]]:
    """The forms of tokens that begin with what is random, by the sign in them."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for token in TOKENS:
        if token.form.startswith("{"):
            found[max(RANDOM.split(token.form)[::4], key=len)].append(token.form)
    return found


def any_of(words: Iterable[str]) -> str:
    """A pattern of words that shares their beginnings, so that a search does not try each word at each place."""
    following: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        following[word[:1]].append(word[1:])
    ended = following.pop("", None)
    branches = [re.escape(letter) + any_of(rest) for letter, rest in sorted(following.items())]
    if not branches:
        return ""
    return f"(?:{'|'.join(branches)})" + ("?" if ended else "")
