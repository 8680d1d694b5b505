(* A program that uses Gc.Memprof itself, as memtrace and memprof-limits do. The runtime has one
   sampler: who gets it must be decided and said. `memprof.exe without` does the same without it. *)

let () =
  let count = ref 0 in
  let tracker =
    { Gc.Memprof.null_tracker with alloc_minor = (fun _ -> incr count; None) }
  in
  let uses_it = Array.length Sys.argv = 1 in
  if uses_it then (
    match Gc.Memprof.start ~sampling_rate:1e-2 ~callstack_size:10 tracker with
    | _ -> print_endline "started"
    | exception Failure _ -> print_endline "refused");
  let l = List.init 100_000 (fun i -> string_of_int i) in
  if uses_it then (
    match Gc.Memprof.stop () with
    | () -> print_endline "stopped"
    | exception Failure _ -> print_endline "not stopped");
  Printf.printf "%d\n%!" (List.length (Sys.opaque_identity l));
  Printf.eprintf "truth: own samples %d\n" !count
