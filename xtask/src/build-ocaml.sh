# Builds as little of OCaml as gives a working ocamlopt with its standard library, unix and
# threads, and what dune asks for: `make world.opt` takes twice as long, and most of what it makes
# is not needed. The compiler is left as bytecode.
#
# Run by ocaml.rs in the folder of the sources, with
#   PREFIX     where the compiler will be used
#   DESTDIR    the folder to install it in until it is complete
#   JOBS       how many things to do at a time
set -eu

./configure --quiet --prefix="$PREFIX" \
  --disable-debugger --disable-debug-runtime --disable-instrumented-runtime \
  --disable-dependency-generation --disable-str-lib --disable-ocamldoc --disable-ocamltest \
  --disable-ocamlobjinfo --disable-stdlib-manpages --without-zstd

for target in coldstart ocamlc library runtimeopt ocamlopt libraryopt ocamltools; do
  make -j "$JOBS" "$target"
done

installed="$DESTDIR$PREFIX"
mkdir -p "$installed/bin" "$installed/lib/ocaml/caml" "$installed/lib/ocaml/stublibs"
for library in otherlibs/unix otherlibs/systhreads; do
  make -j "$JOBS" -C "$library" all allopt
done
for library in stdlib otherlibs/unix otherlibs/systhreads; do
  make -C "$library" install installopt DESTDIR="$DESTDIR"
done
cp runtime/caml/*.h runtime/caml/domain_state.tbl "$installed/lib/ocaml/caml"
cp runtime/libasmrun*.a Makefile.config "$installed/lib/ocaml"
cp boot/ocamlrun ocamlc tools/ocamldep tools/ocamlmklib "$installed/bin"
cp ocamlopt "$installed/bin/ocamlopt"
