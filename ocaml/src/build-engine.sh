# Builds the engine and puts it where the first argument says.
#
# The Rust sources are those around this folder, also when dune runs us in a copy of it somewhere
# below; HEAPLINE_SOURCE names them where they are elsewhere.
set -eu

output="$PWD/$1"
source="${HEAPLINE_SOURCE-}"
if [ -z "$source" ]; then
  source="$PWD"
  while [ ! -e "$source/crates/recorder/Cargo.toml" ]; do
    if [ "$source" = / ]; then
      echo "heapline: the Rust sources are not around $PWD; set HEAPLINE_SOURCE to heapline's folder" >&2
      exit 1
    fi
    source=$(dirname "$source")
  done
fi

cd "$source"
target="${CARGO_TARGET_DIR-$source/target}"
# Dune is not quiet about warnings, and a build that goes well has nothing to say.
cargo rustc --quiet --locked --package heapline-recorder --features c-api --crate-type staticlib \
  --profile agent --target-dir "$target"
cp "$target/agent/libheapline_recorder.a" "$output"
