(* OCaml 5.5: starts a sampler, replaces it by another, and stops that. Prints each time if there is one. *)

let start () =
  ignore (Gc.Memprof.start ~sampling_rate:1e-2 Gc.Memprof.null_tracker : Gc.Memprof.t)

let say what = Printf.printf "%s: %b\n" what (Gc.Memprof.is_sampling ())
let work () = ignore (Sys.opaque_identity (List.init 100_000 string_of_int))

let () =
  say "at first";
  work ();
  start ();
  say "started";
  work ();
  start ();
  say "replaced";
  work ();
  Gc.Memprof.stop ();
  say "stopped";
  work ()
