"""Kinds of secrets that public scanners have rules for, by the name of the rule, each in a line as people write it.

The lines are our own. What is random in one is written as `{class}{length}` and made up when a test runs, so that none of
them stands in this file as it would in a real one: scanners of forges refuse such files. Lengths are those of real ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Manifest = dict[str, Any]

_LETTERS: Final = {
    "a": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    "b": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "d": "0123456789",
    "h": "0123456789abcdef",
    "l": "abcdefghijklmnopqrstuvwxyz0123456789",
    "u": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "w": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
    "x": "0123456789abcdefABCDEF",
}
_RANDOM: Final = re.compile(r"\{([abdhluwx])=?(\d+)\}")


@dataclass(frozen=True)
class Filled:
    """A line with secrets.

    Args:
        line: The line.
        secrets: What of it is random.
    """

    line: str
    secrets: tuple[str, ...]

    def shown(self, text: str) -> list[str]:
        """The secrets of which *text* shows the whole, or a half of a long one."""
        return [secret for secret in self.secrets if any(part in text for part in _parts(secret))]


def _parts(secret: str) -> list[str]:
    half = len(secret) // 2
    return [secret] if len(secret) < 16 else [secret[:half], secret[half:]]


def filled(line: str, label: str) -> Filled:
    """A line with something made up in place of what is random in it, the same for a *label*."""
    secrets: list[str] = []

    def make(match: re.Match[str]) -> str:
        letters = _LETTERS[match[1]]
        length = int(match[2])
        digest = hashlib.shake_256(f"{label} {len(secrets)}".encode()).digest(2 * length)
        signs = [letters[int.from_bytes(digest[i : i + 2]) % len(letters)] for i in range(0, 2 * length, 2)]
        # Some tokens are only known by a digit; a word without one is found by no rule.
        signs[-1] = "7" if length > 1 else signs[-1]
        secrets.append("".join(signs))
        return secrets[-1]

    text = _RANDOM.sub(make, line.replace("\\n", "\n"))
    # Groups of a few signs are parts of a secret, and stand in ordinary texts by chance.
    return Filled(text, tuple(secret for secret in secrets if len(secret) >= 6))


@dataclass(frozen=True)
class Kind:
    """A kind of secret.

    Args:
        rule: The name of a public rule that finds it.
        line: How it is written.
    """

    rule: str
    line: str

    @property
    def is_token(self) -> bool:
        """Whether it is found by its own form, wherever it stands."""
        return re.search(r"[\s=\"'(]", self.line.replace("{a=", "{")) is None


def _kinds(rows: str) -> tuple[Kind, ...]:
    return tuple(Kind(*line.split(maxsplit=1)) for line in map(str.strip, rows.splitlines()) if line)


KINDS: Final = _kinds(r"""
    1password-secret-key            A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}
    1password-service-account-token ops_{b250}
    abuseipdb-api-key               ABUSEIPDB_API_KEY={h80}
    adafruit-api-key                ADAFRUIT_IO_KEY=aio_{a28}
    adobe-client-secret             p8e-{w32}
    age-secret-key                  AGE-SECRET-KEY-1{u58}
    airtable-personal-access-token  pat{a14}.{h64}
    aiven-auth-token                aiven_token: {b372}
    algolia-api-key                 ALGOLIA_ADMIN_KEY="{h32}"
    alibaba-access-key-id           LTAI{a20}
    alibaba-secret-key              alibaba_cloud_access_key_secret={a30}
    anthropic-api-key               sk-ant-api03-{w93}AA
    anthropic-admin-api-key         sk-ant-admin01-{w93}AA
    apify-api-token                 apify_api_{a36}
    artifactory-api-key             AKCp{a69}
    artifactory-reference-token     cmVmdGtu{a56}
    asana-client-secret             ASANA_CLIENT_SECRET={l32}
    assemblyai-api-key              ASSEMBLYAI_API_KEY={l32}
    atlassian-api-token             ATATT3{w180}
    atlassian-access-token          ATCTT3{w180}
    auth0-client-secret             AUTH0_CLIENT_SECRET='{w64}'
    authress-service-key            sc_{l10}.{a4}.acc_{l12}.{a40}
    aws-access-token                AKIA{u16}
    aws-temporary-access-token      ASIA{u16}
    aws-secret-access-key           aws_secret_access_key = {b40}
    aws-session-token               AWS_SESSION_TOKEN={b200}
    aws-bedrock-api-key             ABSK{b109}
    aws-cli-secret                  aws configure set aws_secret_access_key {b40}
    azure-ad-client-secret          {a3}8Q~{w34}
    azure-ad-client-secret-older    {a3}7Q~{w31}
    azure-storage-account-key       AccountName=a;AccountKey={b86}==;EndpointSuffix=core.windows.net
    azure-servicebus                Endpoint=sb://b.example/;SharedAccessKeyName=a;SharedAccessKey={b43}=
    azure-sas                       https://a.blob.core.windows.net/c?sv=2024-11-04&sr=c&sig={a43}%3D
    azure-function-key              https://a.azurewebsites.net/api/f?code={w54}==
    azure-devops-token              AZURE_DEVOPS_EXT_PAT_TOKEN={l52}
    azure-cosmos-key                AccountEndpoint=https://a.documents.azure.com;AccountKey={b86}==;
    beamer-api-token                BEAMER_API_KEY=b_{w44}
    bitbucket-app-password          ATBB{a32}
    bitbucket-client-secret         BITBUCKET_CLIENT_SECRET={w64}
    bitbucket-data-center-token     BBDC-{b40}
    bittrex-secret-key              BITTREX_SECRET_KEY: {l32}
    brevo-api-token                 xkeysib-{h64}-{a16}
    brevo-smtp-key                  xsmtpsib-{h64}-{a16}
    buildkite-user-token            bkua_{h40}
    canva-client-secret             cnvca{w51}
    cerebras-api-key                csk-{l48}
    circleci-personal-token         CCIPAT_{a22}_{h40}
    clerk-secret-key                sk_live_{a42}
    clickhouse-cloud-secret-key     4b1d{a38}
    clickup-personal-api-token      pk_{d8}_{u32}
    clojars-api-token               CLOJARS_{l60}
    cloudflare-api-key              CLOUDFLARE_API_TOKEN={w40}
    cloudflare-origin-ca-key        v1.0-{h24}-{h146}
    cloudflare-user-token           cfut_{a46}
    cloudinary-url                  CLOUDINARY_URL=cloudinary://{d15}:{w27}@demo
    cloudsmith-api-key              csa_{h40}
    cockroachlabs-api-key           CCDB1_{a22}_{a40}
    codecov-access-token            CODECOV_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}
    cohere-api-token                CO_API_KEY={a40}
    coinbase-access-token           coinbase_access_token={w64}
    configcat-sdk-key               configcat-sdk-1/{w22}/{w22}
    confluent-secret-key            CONFLUENT_CLOUD_API_SECRET={b64}
    contentful-personal-token       CFPAT-{w43}
    contentful-delivery-api-token   CONTENTFUL_ACCESS_TOKEN={w43}
    cratesio-api-token              CARGO_REGISTRY_TOKEN=cio{a32}
    curl-auth-header                curl -H "Authorization: Bearer {a24}" https://api.example
    curl-auth-user                  curl -u ada:{a14} https://api.example
    databricks-api-token            dapi{h32}
    datadog-access-token            DD_APP_KEY={h40}
    datadog-by-name                 datadog: {h32}
    dbt-user-token                  dbtu_{w37}
    defined-networking-api-token    dnkey-{u26}-{u52}
    deno-token                      ddp_{a36}
    digitalocean-pat                dop_v1_{h64}
    digitalocean-access-token       doo_v1_{h64}
    digitalocean-refresh-token      dor_v1_{h64}
    discord-bot-token               M{a23}.{a6}.{a38}
    discord-client-secret           DISCORD_CLIENT_SECRET={w32}
    discord-webhook                 https://discord.com/api/webhooks/{d18}/{w68}
    docker-hub-token                dckr_pat_{w27}
    docker-swarm-join-token         SWMTKN-1-{l50}-{l25}
    docker-swarm-unlock-key         SWMKEY-1-{b43}
    doppler-api-token               dp.pt.{a43}
    doppler-service-token           dp.st.prd.{a43}
    doppler-cli-token               dp.ct.{a43}
    droneci-access-token            DRONE_TOKEN={a32}
    dropbox-short-lived-token       sl.B{w135}
    duffel-api-token                duffel_live_{w43}
    dynatrace-api-token             dt0c01.{u24}.{u64}
    easypost-api-token              EZAK{a54}
    easypost-test-api-token         EZTK{a54}
    elastic-cloud-api-key           essu_{b70}
    elevenlabs-api-key              sk_{h48}
    endorlabs-api-key               endr+{a16}
    etsy-access-token               ETSY_ACCESS_TOKEN={l24}
    exoscale-api-key                EXO{h24}
    exoscale-secret                 EXOSCALE_API_SECRET={w43}
    facebook-page-access-token      EAAM{a120}
    facebook-secret                 FACEBOOK_APP_SECRET={h32}
    fastly-api-token                FASTLY_API_TOKEN={w32}
    figma-personal-access-token     figd_{w40}
    finicity-client-secret          FINICITY_CLIENT_SECRET={l20}
    firecrawl-api-key               fc-{h32}
    flutterwave-secret-key          FLWSECK_TEST-{h32}-X
    flutterwave-encryption-key      FLWSECK_TEST{a12}7
    flyio-access-token              fm2_{b200}
    frameio-api-token               fio-u-{w64}
    freshbooks-access-token         freshbooks_access_token = "{l64}"
    gcp-api-key                     AIza{w35}
    gcp-oauth-access-token          ya29.{w120}
    gcp-oauth-client-secret         GOCSPX-{w28}
    gcp-refresh-token               1//0{w60}
    gcp-hmac-key-id                 GOOG1E{u55}
    gcp-service-account-key         "private_key": "-----BEGIN PRIVATE KEY-----\\n{b64}\\n-----END PRIVATE KEY-----"
    github-pat                      ghp_{a36}
    github-fine-grained-pat         github_pat_{a22}_{a59}
    github-oauth                    gho_{a36}
    github-app-token                ghs_{a36}
    github-user-token               ghu_{a36}
    github-refresh-token            ghr_{a76}
    gitlab-pat                      glpat-{w20}
    gitlab-deploy-token             gldt-{w20}
    gitlab-runner-token             glrt-{w20}
    gitlab-registration-token       GR1348941{w20}
    gitlab-pipeline-trigger         glptt-{h40}
    gitlab-feed-token               glft-{w20}
    gitlab-scim-token               glsoat-{w20}
    gitlab-ci-build-token           glcbt-64_{w20}
    gocardless-api-token            live_{w40}
    grafana-service-account-token   glsa_{a32}_{h8}
    grafana-cloud-api-token         glc_{b100}
    grafana-api-key                 eyJrIjoi{a80}
    groq-api-key                    gsk_{a52}
    harness-api-key                 pat.{w22}.{h24}.{a20}
    hashicorp-tf-api-token          {a14}.atlasv1.{w67}
    heroku-api-key                  HRKU-{w60}
    heroku-api-key-older            HEROKU_API_KEY={h8}-{h4}-{h4}-{h4}-{h12}
    honeycomb-ingest-key            hcaik_{l58}
    hubspot-private-app             pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}
    huggingface-access-token        hf_{a34}
    huggingface-organization-token  api_org_{a34}
    infisical-service-token         st.{h24}.{h32}.{h32}
    infracost-api-token             INFRACOST_API_KEY=ico-{a32}
    intercom-api-key                INTERCOM_ACCESS_TOKEN=dG9r{b56}
    intra42-client-secret           s-s4t2ud-{h64}
    ipsec-psk                       192.0.2.1 192.0.2.2 : PSK "{a16}"
    jwk-private                     {"kty": "EC", "crv": "P-256", "x": "a", "y": "b", "d": "{w43}"}
    jwk-symmetric                   {"kty": "oct", "alg": "HS256", "k": "{w43}"}
    jwt                             eyJhbGciOiJIUzI1NiJ9.eyJ{w40}.{w43}
    kraken-access-token             KRAKEN_API_SECRET={b86}==
    kubernetes-bootstrap-token      kubeadm join 192.0.2.1:6443 --token {l6}.{l16}
    kucoin-secret-key               KUCOIN_SECRET_KEY={h8}-{h4}-{h4}-{h4}-{h12}
    langfuse-secret-key             sk-lf-{h8}-{h4}-{h4}-{h4}-{h12}
    langsmith-api-key               lsv2_pt_{h32}_{h10}
    launchdarkly-access-token       api-{h8}-{h4}-{h4}-{h4}-{h12}
    launchdarkly-sdk-key            sdk-{h8}-{h4}-{h4}-{h4}-{h12}
    linear-api-key                  lin_api_{a40}
    linear-oauth                    lin_oauth_{h64}
    linkedin-client-secret          LINKEDIN_CLIENT_SECRET={a16}
    looker-client-secret            LOOKERSDK_CLIENT_SECRET={l24}
    mailchimp-api-key               {h32}-us20
    mailersend-api-token            mlsn.{h64}
    mailgun-private-api-token       key-{h32}
    mailgun-signing-key             MAILGUN_SIGNING_KEY={h32}-{h8}-{h8}
    mapbox-secret-token             sk.eyJ{a80}.{w22}
    mattermost-access-token         MATTERMOST_TOKEN={l26}
    maxmind-license-key             {a6}_{a29}_mmk
    messagebird-api-token           MESSAGEBIRD_ACCESS_KEY={a25}
    microsoft-teams-webhook         https://a.webhook.office.com/webhookb2/{h8}@b/IncomingWebhook/{h32}/c
    mistral-api-key                 MISTRAL_API_KEY={a32}
    mongodb-connection-string       mongodb+srv://ada:{a16}@cluster0.example.net/x?retryWrites=true
    mongodb-atlas-service-account   mdb_sa_sk_{w40}
    mysql-dsn                       ada:{a14}@tcp(db.example:3306)/app?parseTime=true
    neon-api-key                    napi_{l64}
    netlify-access-token            nfp_{a36}
    new-relic-user-api-key          NRAK-{u27}
    new-relic-insert-key            NRII-{w32}
    new-relic-browser-api-token     NRJS-{h19}
    new-relic-license-key           NEW_RELIC_LICENSE_KEY={h36}NRAL
    ngrok-auth-token                ngrok config add-authtoken {a27}_{a21}
    notion-api-token                ntn_{d11}{a35}
    notion-api-token-older          secret_{a43}
    npm-access-token                npm_{a36}
    npmrc-auth-token                //registry.example/:_authToken={h8}-{h4}-{h4}-{h4}-{h12}
    nuget-api-key                   oy2{l43}
    nuget-config-password           <add key="ClearTextPassword" value="{a14}" />
    nvidia-ngc-api-key              nvapi-{w64}
    nytimes-access-token            NYTIMES_API_KEY={a32}
    octopus-deploy-api-key          API-{u26}
    okta-access-token               OKTA_API_TOKEN=00{w40}
    onesignal-token                 os_v2_app_{l103}
    openai-api-key                  sk-proj-{w74}T3BlbkFJ{w74}
    openai-api-key-older            sk-{a20}T3BlbkFJ{a20}
    openai-service-account          sk-svcacct-{w74}
    openrouter-api-key              sk-or-v1-{h64}
    openshift-user-token            sha256~{w43}
    openssl-passphrase              openssl enc -aes-256-cbc -k {a14} -in a -out b
    openvpn-static-key              -----BEGIN OpenVPN Static key V1-----\n{h32}\n{h32}\n-----END OpenVPN Static key V1-----
    opsgenie-api-key                OPSGENIE_API_KEY={h8}-{h4}-{h4}-{h4}-{h12}
    packagist-secret                packagist_acs_{h82}
    paddle-api-key                  pdl_live_apikey_{l26}_{a22}_{a3}
    paypal-braintree-access-token   access_token$production${l16}${h32}
    perplexity-api-key              pplx-{a48}
    php-define                      define('DB_PASSWORD', '{a14}');
    pinecone-api-key                pcsk_{a6}_{a63}
    plaid-api-token                 access-production-{h8}-{h4}-{h4}-{h4}-{h12}
    planetscale-api-token           pscale_tkn_{w43}
    planetscale-oauth-token         pscale_oauth_{w43}
    planetscale-password            pscale_pw_{w43}
    posthog-personal-api-key        phx_{a43}
    postman-api-token               PMAK-{h24}-{h34}
    prefect-api-token               pnu_{l36}
    private-key                     -----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n-----END RSA PRIVATE KEY-----
    private-key-of-openssh          -----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE{b64}\n-----END OPENSSH PRIVATE KEY-----
    private-key-of-pgp              -----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{b64}\n-----END PGP PRIVATE KEY BLOCK-----
    private-key-of-putty            PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n{b48}\nPrivate-MAC: 0a
    pulumi-api-token                pul-{h40}
    pypi-upload-token               pypi-AgEIcHlwaS5vcmc{w150}
    python-subscript                settings['password'] = '{a14}'
    rails-secret-key-base           secret_key_base: {h128}
    rapidapi-access-token           X-RapidAPI-Key: {l50}
    razorpay-key                    rzp_live_{a14}
    readme-api-token                rdme_{l70}
    redis-requirepass               requirepass {a14}
    redis-cli-auth                  REDISCLI_AUTH={a14}
    render-api-key                  rnd_{a28}
    replicate-api-token             r8_{a37}
    resend-api-key                  re_{a8}_{a24}
    rootly-api-key                  rootly_{h64}
    rubygems-api-token              rubygems_{h48}
    runpod-api-key                  rpa_{u38}{l6}
    salesforce-access-token         00D{a12}!{w96}
    scalingo-api-token              tk-us-{w48}
    scaleway-secret-key             SCW_SECRET_KEY={h8}-{h4}-{h4}-{h4}-{h12}
    segment-api-token               sgp_{a64}
    sendbird-access-token           SENDBIRD_API_TOKEN={h40}
    sendgrid-api-token              SG.{w22}.{w43}
    sendinblue-api-token            SENDINBLUE_API_KEY=xkeysib-{h64}-{a16}
    sentry-org-token                sntrys_eyJ{b80}_{b43}
    sentry-user-token               sntryu_{h64}
    sentry-dsn-secret               https://{h32}:{h32}@o1.ingest.example/42
    shippo-api-token                shippo_live_{h40}
    shopify-access-token            shpat_{h32}
    shopify-custom-access-token     shpca_{h32}
    shopify-private-app             shppa_{h32}
    shopify-shared-secret           shpss_{h32}
    sidekiq-secret                  BUNDLE_ENTERPRISE__CONTRIBSYS__COM_CREDENTIALS={h8}:{h8}
    slack-bot-token                 xoxb-{d12}-{d13}-{a24}
    slack-user-token                xoxp-{d12}-{d12}-{d12}-{h32}
    slack-app-token                 xapp-1-A{u10}-{d13}-{h64}
    slack-config-token              xoxe.xoxp-1-{a146}
    slack-refresh-token             xoxe-1-{a146}
    slack-session-token             xoxc-{d12}-{d12}-{d12}-{h64}
    slack-webhook                   https://hooks.slack.com/services/T{u9}/B{u9}/{a24}
    snyk-api-token                  SNYK_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}
    sonar-api-token                 squ_{h40}
    sourcegraph-access-token        sgp_{h16}_{h40}
    spring-datasource               spring.datasource.password={a14}
    square-access-token             sq0atp-{w22}
    square-oauth-secret             sq0csp-{w43}
    squarespace-access-token        SQUARESPACE_ACCESS_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}
    statsig-server-secret           secret-{a44}
    stripe-access-token             sk_live_{a24}
    stripe-restricted-key           rk_live_{a24}
    stripe-test-key                 sk_test_{a24}
    stripe-webhook-secret           whsec_{b32}
    supabase-management-token       sbp_{h40}
    supabase-secret-key             sb_secret_{w31}
    tailscale-key                   tskey-auth-{a11}CNTRL-{a30}
    tavily-api-key                  tvly-dev-{a32}
    telegram-bot-api-token          {d10}:AA{w33}
    tencent-secret-id               AKID{a32}
    togetherai-api-key              tgp_v1_{w43}
    travisci-access-token           TRAVIS_TOKEN={a22}
    trello-access-token             ATTA{h64}
    twilio-api-key                  SK{h32}
    twilio-auth-token               TWILIO_AUTH_TOKEN={h32}
    twitch-api-token                TWITCH_CLIENT_SECRET={l30}
    twitter-bearer-token            AAAAAAAAAAAAAAAAAAAAA{b90}
    twitter-access-secret           TWITTER_ACCESS_TOKEN_SECRET={a45}
    typeform-api-token              tfp_{w59}
    unkey-root-key                  unkey_{a22}
    vault-service-token             hvs.{w90}
    vault-batch-token               hvb.{w140}
    vault-unseal                    vault operator unseal {b44}
    vercel-api-token                vcp_{a56}
    virustotal-api-key              VIRUSTOTAL_API_KEY={h64}
    volcengine-access-key           AKLT{a44}
    voyageai-api-key                pa-{w43}
    wakatime-api-key                waka_{h8}-{h4}-{h4}-{h4}-{h12}
    weights-and-biases-api-key      wandb_v1_{w77}
    weights-and-biases-by-name      WANDB_API_KEY={h40}
    wireguard-private-key           PrivateKey = {b43}=
    wireguard-preshared-key         PresharedKey = {b43}=
    wpa-psk                         psk="{a14}"
    xai-api-key                     xai-{a80}
    xendit-api-key                  xnd_production_{a52}
    yandex-api-key                  AQVN{w36}
    yandex-aws-access-token         YANDEX_AWS_SECRET_ACCESS_KEY=YC{w38}
    zendesk-secret-key              ZENDESK_API_TOKEN={l40}
    zuplo-consumer-api-key          zpka_{l32}_{h8}
""")


def _config_map(text: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"file": text}}


def _pod(container: Mapping[str, Any]) -> Manifest:
    main = {"name": "main", "image": "registry.example/main:1", **container}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [main]}}


def claim(expression: str) -> Manifest:
    """A claim whose CEL selector is *expression*."""
    exactly = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": expression}}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "a"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


PLACES: Final[Mapping[str, Callable[[str], Manifest]]] = {
    "a file": lambda line: _config_map(f"# written by hand\n{line}\nport: 80\n"),
    "a script": lambda line: _pod({"command": ["sh", "-c", f"set -e\n{line}\nexec serve"]}),
    "an annotation": lambda line: {
        **_config_map("a"),
        "metadata": {"name": "a", "annotations": {"a/note": line}},
    },
    "a script of a file": lambda line: _config_map(json.dumps({"steps": [{"run": line}]})),
}
"""Where a line with a secret stands."""

PLACES_OF_TOKENS: Final[Mapping[str, Callable[[str], Manifest]]] = {
    "a variable": lambda line: _pod({"env": [{"name": "WHO", "value": line}]}),
    "an argument": lambda line: _pod({"args": ["serve", f"--who={line}", "--port", "80"]}),
    "an item": lambda line: _pod({"args": ["serve", "--who", line]}),
    "a sentence": lambda line: _config_map(f"We use {line}, please keep it."),
    "a header": lambda line: _pod({"args": ["curl", "-H", f"X-Who: {line}", "https://api.example"]}),
    "CEL": lambda line: claim(f"device.attributes['gpu.nvidia.com'].productName == {json.dumps(line)}"),
    "JSON in a file": lambda line: _config_map(json.dumps({"who": line, "port": 80})),
}
"""Where a token stands that is known by its own form."""
