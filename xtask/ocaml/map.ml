(* What recording costs: a Map of 20,000 strings, built 20 times. With an argument, the runtime's
   sampler runs at that rate with callbacks that do nothing. *)

module Strings = Map.Make (String)

let () =
  (match Sys.argv with
  | [| _; rate |] ->
      let keep _ = Some () in
      ignore
        (Gc.Memprof.start ~sampling_rate:(float_of_string rate)
           { alloc_minor = keep; alloc_major = keep; promote = keep;
             dealloc_minor = ignore; dealloc_major = ignore })
  | _ -> ());
  for _ = 1 to 20 do
    let map = ref Strings.empty in
    for k = 1 to 20_000 do
      map := Strings.add (string_of_int (k * 7919 mod 20_011)) k !map
    done;
    ignore (Sys.opaque_identity !map)
  done
