#!/bin/sh
# Makes what compose.yml needs beside itself: secrets/, issuers/ and .env. As root, in this folder:
#
#   ./setup.sh PUBLIC_URL PUBLISH_ADDRESS
#
# What is there already stays. The image longshore-tools makes the keys.
set -eu
cd "$(dirname "$0")"
if [ $# -ne 2 ]; then
  echo "usage: setup.sh PUBLIC_URL PUBLISH_ADDRESS, as in: setup.sh https://api.example.net 192.0.2.7" >&2
  exit 1
fi
# The user of the images.
user=10001
# Others reach nothing in this folder, whatever the modes of its files.
install -d -m 0700 secrets
install -d -m 0755 issuers

echo "· keys and accounts of NATS"
docker run --rm --network none --user 0:0 --volume "$PWD/secrets:/keys" longshore-tools nats-keys /keys >secrets/made
account=$(sed -n 's/^HOSTS_ACCOUNT  *//p' secrets/made)
rm secrets/made

new() { [ ! -s "secrets/$1" ]; }
random() { head -c 32 /dev/urandom | base64; }
if new vault-keys; then echo "k1:$(random)" >secrets/vault-keys; fi
if new metrics-token; then random >secrets/metrics-token; fi
if new grafana-password; then random >secrets/grafana-password; fi
if new redis-password; then random >secrets/redis-password; fi
# Redis keeps the digest alone.
digest=$(printf %s "$(cat secrets/redis-password)" | sha256sum | cut -d ' ' -f 1)
cat >secrets/redis.acl <<END
user default off
user gateway on #$digest resetkeys ~longshore:* resetchannels &longshore.* -@all +incrby +expire +publish +subscribe +info
END
# The agent starts only with its join token, which an operator puts here.
touch secrets/join-token

chown "$user:$user" secrets/*
chmod 0400 secrets/*
# Other users read these: those of the images of NATS, Redis, Prometheus and Grafana.
chmod 0444 secrets/accounts.conf secrets/redis.acl secrets/metrics-token secrets/grafana-password

cat >.env <<END
COMPOSE_PROJECT_NAME=longshore
HOSTS_ACCOUNT=$account
PUBLIC_URL=$1
PUBLISH_ADDRESS=$2
END
echo "· made secrets/ and .env; now write issuers/issuers.json, and start with: docker compose up -d"
