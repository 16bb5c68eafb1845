#!/bin/sh
# Lints the description of the API, makes a TypeScript client of it, compiles that strictly and runs it against a
# service: clients/typescript/test.sh STINT WORK, with node and npm, which fetches the packages of package.json.
set -eu
stint=$(realpath "$1") from=$(dirname "$(realpath "$0")")
mkdir -p "$2" && cd "$2"
cp "$from/package.json" "$from/redocly.yaml" "$from/loop.ts" .
npm install --no-audit --no-fund --silent
"$stint" openapi >openapi.json
REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx redocly lint openapi.json 2>lint.txt || { cat lint.txt; exit 1; }
! grep -q 'You have .* warning' lint.txt || { cat lint.txt; exit 1; }
npx openapi-typescript openapi.json -o api.d.ts >/dev/null
npx tsc --strict --target es2022 --module nodenext --moduleResolution nodenext --skipLibCheck loop.ts

rm -rf like data
"$stint" init --like gpu --out like >/dev/null
port=$((20000 + $$ % 20000))
"$stint" serve --data data --listen "127.0.0.1:$port" >serve.txt 2>&1 &
serve=$!
trap 'kill $serve 2>/dev/null' EXIT
"$stint" push --server "http://127.0.0.1:$port" --plan like/plan.yaml --hosts like/hosts.csv >push.txt
node loop.js "http://127.0.0.1:$port" /Models/Train
