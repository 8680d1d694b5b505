(* The sampler of OCaml 5.3 and later: domains inherit it, and it goes on to tell what becomes of
   blocks until it is discarded. *)

type profile = Gc.Memprof.t

module Sampler = struct
  (* Replaced by the function of this name that OCaml 5.5 has. *)
  let[@warning "-32"] is_sampling () = false

  include Gc.Memprof
end

external pass_over : int -> unit = "heapline_ml_pass_over"

let stop profile =
  Gc.Memprof.stop ();
  Gc.Memprof.discard profile

let start ~sampling_rate ~callstack_size tracker : profile =
  (* OCaml 5.3 and 5.4 refuse to start a second sampler; 5.5 would end the first one. *)
  if Sampler.is_sampling () then failwith "Gc.Memprof.start: already started.";
  (* The sampler of a domain always begins with the same random numbers. It goes on with others when it is stopped and
     started again, where a recording's seed says. *)
  let first = Gc.Memprof.start ~sampling_rate ~callstack_size:0 Gc.Memprof.null_tracker in
  pass_over 0;
  stop first;
  let profile = Gc.Memprof.start ~sampling_rate ~callstack_size tracker in
  pass_over 1;
  profile
