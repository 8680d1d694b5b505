(* The sampler of OCaml 4.12 to 4.14: one for the process, which forgets everything when it stops. *)

type profile = unit

let start ~sampling_rate ~callstack_size tracker : profile =
  Gc.Memprof.start ~sampling_rate ~callstack_size tracker

let stop () = Gc.Memprof.stop ()
