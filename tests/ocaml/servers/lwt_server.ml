(* A server on Lwt with clients of its own: as eio_server.ml, in one domain.

   lwt_server FILE             until FILE exists
   lwt_server CLIENTS REQUESTS so many clients, with so many requests
   lwt_server check REQUESTS   one client, with so many requests *)

open Lwt.Syntax
module Words = Map.Make (String)

let answer text =
  let add words word = Words.update word (fun n -> Some (1 + Option.value n ~default:0)) words in
  let words = List.fold_left add Words.empty (String.split_on_char ' ' text) in
  Words.fold (fun word n answer -> Printf.sprintf "%s=%d" word n :: answer) words []
  |> List.rev |> String.concat " "

let serve _ (input, output) =
  let rec loop () =
    let* line = Lwt_io.read_line_opt input in
    match line with
    | None -> Lwt.return_unit
    | Some line ->
        let* () = Lwt_io.write_line output (answer line) in
        loop ()
  in
  loop ()

let question request =
  String.concat " " (List.init 50 (fun i -> string_of_int (i * request mod 23)))

let ask address is_enough =
  Lwt_io.with_connection address @@ fun (input, output) ->
  let rec loop requests sum =
    if is_enough requests then Lwt.return (requests, sum)
    else
      let* () = Lwt_io.write_line output (question requests) in
      let* line = Lwt_io.read_line input in
      loop (requests + 1) (((sum * 31) + String.length line) land 0xffffff)
  in
  loop 0 0

let run clients is_enough =
  let file = Filename.temp_file "lwt" ".socket" in
  Sys.remove file;
  let address = Unix.ADDR_UNIX file in
  let* server = Lwt_io.establish_server_with_client_address address serve in
  let* results = Lwt_list.map_p (fun () -> ask address is_enough) (List.init clients ignore) in
  let* () = Lwt_io.shutdown_server server in
  Lwt.return results

let () =
  let results =
    match Sys.argv with
    | [| _; "check"; requests |] -> run 1 (( = ) (int_of_string requests))
    | [| _; clients; requests |] -> run (int_of_string clients) (( = ) (int_of_string requests))
    | _ -> run 4 (fun requests -> requests land 15 = 0 && Sys.file_exists Sys.argv.(1))
  in
  List.iter (fun (requests, sum) -> Printf.printf "%d rounds: %x\n" requests sum) (Lwt_main.run results)
