(* The sampler of OCaml 5.3 and later: domains inherit it, and it goes on to tell what becomes of
   blocks until it is discarded. *)

type profile = Gc.Memprof.t

let start ~sampling_rate ~callstack_size tracker : profile =
  Gc.Memprof.start ~sampling_rate ~callstack_size tracker

let stop profile =
  Gc.Memprof.stop ();
  Gc.Memprof.discard profile
