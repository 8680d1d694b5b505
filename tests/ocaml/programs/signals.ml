(* Signals that are handled while the program allocates, and one that is not.
   signals.exe handled | term | int | abort *)

let seen = ref 0

let allocate n =
  let l = ref [] in
  for i = 1 to n do
    l := string_of_int i :: !l;
    if i mod 1_000 = 0 then Unix.kill (Unix.getpid ()) Sys.sigusr1
  done;
  List.length (Sys.opaque_identity !l)

let () =
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> seen := !seen + List.length [ !seen; 1 ] - 1));
  Printf.printf "allocated %d\n%!" (allocate 100_000);
  Printf.printf "some handled: %b\n%!" (!seen > 0);
  let die signal =
    Unix.kill (Unix.getpid ()) signal;
    Unix.sleep 5;
    print_endline "still alive"
  in
  match Sys.argv.(1) with
  | "handled" -> ()
  | "term" -> die Sys.sigterm
  | "int" -> die Sys.sigint
  | "abort" -> die Sys.sigabrt
  | _ -> assert false
