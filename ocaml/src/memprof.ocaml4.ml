(* The sampler of OCaml 4.12 to 4.14: one for the process, which forgets everything when it stops. *)

type profile = unit

external pass_over : int -> unit = "heapline_ml_pass_over"

(* The sampler always begins with the same random numbers. It goes on with others when it is stopped and started again,
   where a recording's seed says. *)
let start ~sampling_rate ~callstack_size tracker : profile =
  Gc.Memprof.start ~sampling_rate ~callstack_size:0 Gc.Memprof.null_tracker;
  pass_over 0;
  Gc.Memprof.stop ();
  Gc.Memprof.start ~sampling_rate ~callstack_size tracker;
  pass_over 1

let stop () = Gc.Memprof.stop ()
