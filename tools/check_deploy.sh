#!/bin/bash
# Validates what Docker and Kubernetes are given, by their own schemas and loaders, without either of them running:
#   compose.yaml         the loader of Docker Compose (compose-go)
#   deploy/kubernetes    kustomize build, then the schemas of several versions of Kubernetes, strictly
# Needs Go, and package indexes for Go and Python; installs into build/deploy-tools.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/build/deploy-tools
COMPOSE_GO=v2.4.6
KUSTOMIZE=v5.5.0
VALIDATE=1.37.0
KUBERNETES_VERSIONS="1.28.0 1.33.0 1.37.0"

command -v go > /dev/null || { echo "check_deploy: needs Go" >&2; exit 1; }
mkdir -p "$tools/bin"
[ -x "$tools/bin/cmd" ] || GOBIN=$tools/bin go install "github.com/compose-spec/compose-go/v2/cmd@$COMPOSE_GO"
[ -x "$tools/bin/kustomize" ] || GOBIN=$tools/bin go install "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE"
[ -x "$tools/venv/bin/kubernetes-validate" ] || {
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$VALIDATE"
}

"$tools/bin/cmd" compose.yaml > "$tools/compose.yaml"
echo "compose.yaml is what Docker Compose expects"
"$tools/bin/kustomize" build deploy/kubernetes > "$tools/kubernetes.yaml"
for version in $KUBERNETES_VERSIONS; do
    "$tools/venv/bin/kubernetes-validate" --strict --quiet -k "$version" "$tools/kubernetes.yaml"
done
echo "deploy/kubernetes is what Kubernetes ${KUBERNETES_VERSIONS// /, } expect"
